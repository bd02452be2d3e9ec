"""Methods that papers compare themselves with, and that need more than runs beside one another."""
