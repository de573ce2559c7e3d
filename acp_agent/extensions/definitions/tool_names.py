"""Map other programs' tool names, in the fields of skills and agents, to our tools."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

CHANGES = ("edit", "write", "apply_patch")  # tools that a read-only agent does not have

# Our tools. Tools of MCP servers and plugins, and skills used as tools, have prefixed names.
TOOLS = frozenset(
    {
        "apply_patch", "ask_user", "background", "call_mcp_tool", "code", "edit", "finish_loop",
        "glob", "grep", "http_request", "list", "list_mcp_resources", "memory", "read",
        "read_mcp_resource", "rewind", "search_mcp_tools", "session_search", "shell", "skill",
        "task", "todo", "web_fetch", "web_search", "write", "write_skill",
    }
)  # fmt: skip

# Other programs' tools and the equivalent tools of ours.
TOOL_ALIASES: Mapping[str, str] = {
    "Agent": "task",
    "AskUserQuestion": "ask_user",
    "Bash": "shell",
    "BashOutput": "background",
    "Edit": "edit",
    "Glob": "glob",
    "Grep": "grep",
    "KillBash": "background",
    "KillShell": "background",
    "LS": "list",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "NotebookRead": "read",
    "Read": "read",
    "Skill": "skill",
    "Task": "task",
    "TaskOutput": "background",
    "TaskStop": "background",
    "TodoRead": "todo",
    "TodoWrite": "todo",
    "WebFetch": "web_fetch",
    "WebSearch": "web_search",
    "Write": "write",
    "bash": "shell",
    "todowrite": "todo",
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "file_list": "list",
    "file_read": "read",
    "file_write": "write",
    "activate_skill": "skill",
    "google_web_search": "web_search",
    "grep_search": "grep",
    "list_directory": "list",
    "read_file": "read",
    "read_many_files": "read",
    "replace": "edit",
    "run_shell_command": "shell",
    "search_file_content": "grep",
    "write_file": "write",
    "write_todos": "todo",
    "ocr": "read",
}
_COMMA = re.compile(r",(?![^(]*\))")  # not inside brackets: Bash(git add, git commit)
# GitHub's tools, alone or as `TOOL/PART`, and the equivalent tools of ours.
_GITHUB_TOOLS: Mapping[str, tuple[str, ...]] = {
    "agent": ("task",), "runSubagent": ("task",), "custom-agent": ("task",), "Task": ("task",),
    "edit": CHANGES, "editFiles": CHANGES, "new": CHANGES, "createFile": CHANGES,
    "execute": ("shell", "background"), "shell": ("shell", "background"),
    "runCommands": ("shell", "background"), "runInTerminal": ("shell", "background"),
    "runTasks": ("shell", "background"), "runTests": ("shell", "background"),
    "terminal": ("shell", "background"), "getTerminalOutput": ("background",),
    "changes": ("shell",), "testFailure": ("read",), "problems": ("read",),
    "terminalLastCommand": ("background",), "terminalSelection": ("background",),
    "read": ("read", "list"), "readFile": ("read",), "listDirectory": ("list",),
    "search": ("grep", "glob", "list", "read"), "codebase": ("grep", "glob", "list", "read"),
    "fileSearch": ("glob",), "textSearch": ("grep",), "usages": ("grep",),
    "searchResults": ("grep",), "findTestFiles": ("glob",),
    "web": ("web_fetch", "web_search"), "fetch": ("web_fetch",), "githubRepo": ("web_fetch",),
    "todo": ("todo",), "todos": ("todo",), "askQuestions": ("ask_user",),
}  # fmt: skip
_GITHUB_SETS = frozenset({"vscode", "agent", "edit", "execute", "read", "search", "web"})


def normalize_tools(names: str | Sequence[str]) -> list[str]:
    """Return tools as a list with our names; a text is split at commas."""
    entries = _COMMA.split(names) if isinstance(names, str) else names
    stripped = (name.strip() for name in entries)
    return [TOOL_ALIASES.get(name, name) for name in stripped if name]


def restricted_tool(name: str) -> str | None:
    """Return the tool that a partial permission like `Bash(git *)` names; None for a whole tool."""
    tool, bracket, _ = name.partition("(")
    return TOOL_ALIASES.get(tool.strip(), tool.strip()) if bracket else None


def may_exist(pattern: str) -> bool:
    """Return whether a pattern names one of our tools, or may name one of a server or plugin."""
    is_added = "__" in pattern or pattern.startswith("skill_")
    return is_added or any(fnmatchcase(tool, pattern) for tool in TOOLS)


def github_tools(name: str) -> tuple[str, ...]:
    """Return our tools for a GitHub tool, or for a tool of an MCP server."""
    first, slash, part = name.partition("/")
    if not slash:
        return _GITHUB_TOOLS.get(name, (name,))
    if first in _GITHUB_SETS or part in _GITHUB_TOOLS:
        return _GITHUB_TOOLS.get(part, _GITHUB_TOOLS.get(first, ()))
    return (f"mcp__{first.rpartition('/')[2]}__{part.rpartition('/')[2]}",)
