"""How a job's files, the agent and what a task needs come to machines that share no folder with the launcher."""
