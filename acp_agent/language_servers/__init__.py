"""Language servers: programs that know a language, asked for problems, definitions and the like.

A layer of its own between the tools and the workspace (docs/language-servers.md). Nothing here is
imported before a file is read or changed by a tool.
"""
