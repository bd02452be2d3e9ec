"""Many requests at once: a set packing of tenant sets onto nodes, exact where small, searched where large."""
