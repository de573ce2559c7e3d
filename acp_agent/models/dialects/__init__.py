"""Recognise and write tool calls as text, in the form that a model was trained on."""
