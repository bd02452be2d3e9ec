"""Constants and additive effects: what anybody would try first, as a base learner."""
