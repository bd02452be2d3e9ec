"""Answers over time: timelines of company, futures that are drawn, and bounds calibrated on the act."""
