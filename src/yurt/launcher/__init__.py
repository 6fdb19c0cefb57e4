"""Submits a run, watches it, stops it, and remembers it."""
