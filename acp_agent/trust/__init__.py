"""What folders bring along that can run or steer the agent, and which of it the user trusts."""
