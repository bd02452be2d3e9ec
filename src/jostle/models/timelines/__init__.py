"""Answers over time: timelines of co-runners, drawn futures, and their bounds."""
