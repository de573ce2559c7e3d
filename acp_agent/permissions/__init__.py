"""What may happen: modes, shell syntax, remembered grants, one gate."""
