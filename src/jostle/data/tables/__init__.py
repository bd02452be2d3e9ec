"""Reads foreign tables, lines and cells: numbers, times and sizes with their units."""
