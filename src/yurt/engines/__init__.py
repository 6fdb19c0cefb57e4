"""Adapters to what runs tasks. Each engine is one folder; none imports another."""
