"""What measured co-runs add to the simulator: times alone, effects, what is left, and weights for each."""
