"""Answers queries item by item: cached predictions, searches in a process of their own."""
