"""Changes a fitted model: updates, versions, suggested runs."""
