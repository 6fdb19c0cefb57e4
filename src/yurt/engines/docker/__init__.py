"""The local Docker daemon: each task is an agent in a container of the job's image."""
