"""Commands that run on: the service."""
