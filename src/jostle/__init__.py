"""Jostle."""
