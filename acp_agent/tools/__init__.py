"""What the model can do: one file a tool, its description for the model beside it."""
