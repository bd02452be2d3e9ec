"""`jostle forecast`: resource use at a time."""
