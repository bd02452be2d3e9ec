"""Commands that say what may run where: safe on one accelerator, place in a fleet."""
