"""The papers' protocol for runtimes: splits, variants, cells, tables and figures."""
