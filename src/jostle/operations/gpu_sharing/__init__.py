"""Asks which services and batch jobs may share an accelerator."""
