"""Methods of our own beside the protocol's (Extensibility, Extension Methods).

They are described in docs/extensions.md and schemas/extensions.schema.json.
"""
