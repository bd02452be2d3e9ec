"""Tests of the study of the default."""
