"""Nomad job files, as JSON (the HTTP API's form) and HCL2, in and out."""
