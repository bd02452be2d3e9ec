"""The default of `jostle fit DATA` beside single methods and simple rules, on many kinds of data."""
