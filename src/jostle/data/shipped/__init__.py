"""Holds the datasets that come with Jostle."""
