"""What is asked: fleets and requests, read from tables row by row."""
