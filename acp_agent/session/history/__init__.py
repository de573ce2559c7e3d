"""The history of a session: checkpoints, rewinds, forks, interrupted turns and exports."""
