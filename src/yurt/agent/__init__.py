"""The small supervisor that runs each task's process, in the task's place. Standard library alone."""
