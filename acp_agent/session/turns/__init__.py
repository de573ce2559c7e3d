"""The turns of a session: their plans, resources, budgets and ends."""
