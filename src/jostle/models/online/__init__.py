"""A model after it was fitted: what it learns since, its versions, and what to measure next."""
