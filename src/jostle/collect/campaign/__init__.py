"""All windows of a plan, on this machine or on the workers of a cluster, into a dataset."""
