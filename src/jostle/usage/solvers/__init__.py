"""Couples snapshots along a graph: Sinkhorn, barycentric, series-parallel, exact transport."""
