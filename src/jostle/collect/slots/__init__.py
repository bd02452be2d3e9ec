"""The processes that run one member each, and the harnesses in them that note every beat."""
