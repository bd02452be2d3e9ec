"""What is answered about one request at a time: safe, rank, walltime, whatif."""
