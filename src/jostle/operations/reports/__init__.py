"""Shows data as reports: datasets, imports, campaigns, traces, drift."""
