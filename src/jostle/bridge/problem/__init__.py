"""What is given: the runs' states at a number of times, as weighted clouds with their units and clock."""
