"""The page that people open."""
