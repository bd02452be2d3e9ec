"""Recorders of the data that come with Jostle, and of small campaigns of one's own."""
