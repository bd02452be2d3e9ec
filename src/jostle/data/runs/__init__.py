"""Holds runs in memory: co-locations, features, segments with other co-runners, solo times."""
