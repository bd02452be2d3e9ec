"""Does a campaign's dataset tell the truth, and would its collector have noticed others? Checked here."""
