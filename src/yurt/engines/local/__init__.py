"""This machine: each task is an agent, a process, with the task's process under it."""
