"""Slowdown of sets of workloads never measured together."""
