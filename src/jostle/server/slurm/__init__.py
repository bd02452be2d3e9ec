"""What the submit plugin of Slurm asks."""
