"""A promise for what was chosen: the choice replayed on the model's own calibration runs."""
