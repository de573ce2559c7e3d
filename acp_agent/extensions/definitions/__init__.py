"""Skills and agents: Markdown files of the user and of the project, found, read and checked.

`places` says where they can be and is all that a session without any needs; `finding` reads them.
"""
