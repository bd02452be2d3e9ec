"""Placement by several policies, with measured co-locations as the truth."""
