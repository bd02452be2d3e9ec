"""Accelerators as nodes: services with rates and tails, batch work, memory, and how a device is shared."""
