"""Use cases as functions and programs."""
