"""How often bounds hold: under drift, over other mixes, for names and sets never seen."""
