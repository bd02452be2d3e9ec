"""What a fit is worth: asked about runs that were left out, beside simple rules that see the same runs."""
