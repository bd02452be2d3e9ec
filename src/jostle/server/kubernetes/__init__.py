"""The scheduler extender of Kubernetes: filter, prioritize, and pods that are runs."""
