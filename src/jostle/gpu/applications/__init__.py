"""What applications ask of the accelerator: their tasks, from profiles or by hand, as a device sees them."""
