"""A promise for what was chosen: calibrated on sets of the model's own calibration runs, chosen likewise."""
