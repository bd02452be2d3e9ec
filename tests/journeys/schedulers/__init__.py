"""Real schedulers that place real jobs through the service."""
