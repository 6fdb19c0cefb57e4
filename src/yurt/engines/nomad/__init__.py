"""Nomad with Consul: each run is one batch job, each role a group of it, each task an allocation with an agent."""
