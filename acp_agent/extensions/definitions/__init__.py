"""Find, read and check skills and agents: Markdown files of the user and of the project.

`locations` lists the folders and is all that a session without definitions needs; `discovery` reads
the files.
"""
