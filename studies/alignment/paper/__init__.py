"""Every table and figure of the paper (Saeed et al., MLCAD 2021) by its own learner, from any traces."""
