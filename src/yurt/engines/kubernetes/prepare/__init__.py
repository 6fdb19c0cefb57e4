"""The ground of runs on a cluster: what is missing is found, named with what mends it, and made."""
