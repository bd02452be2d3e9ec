"""Commands on datasets: import what was measured elsewhere, and say what is there."""
