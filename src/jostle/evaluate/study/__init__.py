"""What every study has in common: its contract, registry, report, runner, measures and pictures."""
