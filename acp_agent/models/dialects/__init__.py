"""Tool calls that a model writes as text, in the form that it was trained on."""
