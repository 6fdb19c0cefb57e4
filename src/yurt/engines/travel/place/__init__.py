"""What is made ready on a node before a task's agent begins: its files and its Python environment.

These modules travel with the job and run in the agent's process, by the node's own Python: standard library and the
agent's modules alone.
"""
