"""What a run never exceeds: limits on the peaks of whole runs, and on what is left of one that goes on."""
