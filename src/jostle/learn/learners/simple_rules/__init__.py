"""Constants, random effects and low-rank rests of them: what anybody would try first, as a base learner."""
