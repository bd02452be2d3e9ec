"""Readers of measurements that other projects and tools wrote down."""
