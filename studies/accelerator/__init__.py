"""The accelerator simulator against measurements, with what it has to beat, and at scale."""
