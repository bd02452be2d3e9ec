"""Samples and helpers for tests of perf stat, and for others that need them."""

from __future__ import annotations

LINES = """# started on Sat Jan  1 10:00:00 2022

     0.010068,5.22,msec,task-clock,5223337,100.00,0.261,CPUs utilized
     0.010068,1000,,instructions:u,5223337,50.00,,
     0.010068,<not supported>,,LLC-load-misses,0,100.00,,
     0.027377,3.50,msec,task-clock,3500000,100.00,0.159,CPUs utilized
     0.027377,<not counted>,,instructions:u,0,0.00,,
     0.027377,<not supported>,,LLC-load-misses,0,100.00,,
"""
