"""What runs inside a run's pods: the task's agent, and the keeper of the run's state. Standard library alone."""
