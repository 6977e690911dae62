"""Slow, plain-Python reference values that the library is tested against."""
