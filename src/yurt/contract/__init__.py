"""What launcher and agents share: names, the run's specification and state, and what to do next.

Standard library alone: it travels inside the agent.
"""
