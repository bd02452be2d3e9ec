"""What services record of themselves: series of readings over clock time, cut into runs."""
