"""Research that uses the package and is not part of it."""
