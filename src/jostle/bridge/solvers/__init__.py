"""Couplings of clouds along a graph: one edge (Sinkhorn), a path, barycentric, series-parallel."""
