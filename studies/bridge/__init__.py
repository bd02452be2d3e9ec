"""Forecasts of resource use: data, rivals, scores, tables and figures."""
