"""A folder of runs: its immutable Parquet files, read, added to, read without loading, summarised."""
