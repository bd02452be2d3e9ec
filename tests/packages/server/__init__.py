"""The service, over HTTP as a user calls it."""
