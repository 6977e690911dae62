"""Benchmarks: one script or folder for each question, and the harness that they share."""
