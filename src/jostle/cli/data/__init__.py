"""Commands on data: import, measure, trace, and see what is there."""
