"""Conditions forecasts on the run so far."""
