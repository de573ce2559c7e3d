"""Language servers: programs that report problems, definitions and references in code.

A layer between the tools and the workspace (docs/language-servers.md). Nothing here is imported
before a tool reads or changes a file.
"""
