"""The scheduler extender of Kubernetes: filter, prioritize, bind."""
