"""The alignment method on recorded and on simulated programs, with figures."""
