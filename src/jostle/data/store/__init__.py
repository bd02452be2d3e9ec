"""Keeps a dataset as a folder of immutable Parquet files: add, read, set aside, summarise."""
