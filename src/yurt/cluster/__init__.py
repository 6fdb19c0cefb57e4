"""Clusters that Yurt raises: on this machine for trying things out."""
