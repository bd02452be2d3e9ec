"""Logs of schedulers: who was where from when to when, and from that who ran beside whom."""
