"""A server under an open loop of requests, in a slot."""
