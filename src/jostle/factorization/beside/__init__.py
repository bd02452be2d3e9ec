"""What stands beside the network: measured times alone, and simple rules for slowdowns."""
