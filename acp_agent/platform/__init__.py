"""What differs between operating systems, and nothing else."""
