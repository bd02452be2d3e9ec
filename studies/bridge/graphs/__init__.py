"""Cores that hang together: the paper's barycentric and series-parallel bridges, and forecasts by them."""
