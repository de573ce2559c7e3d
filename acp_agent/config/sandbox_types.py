"""The types of the sandbox table in the configuration file.

The names are those of Anthropic's sandbox-runtime, in the spelling of this file.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from acp_agent.config.policy_types import Table

SandboxPath = Annotated[
    str, Meta(min_length=1, examples=["~/.cache/company", "/opt/data", "build"])
]
Domain = Annotated[
    str,
    Meta(
        pattern=r"^(\*\.)?[A-Za-z0-9_:\[\].-]+$(?!\n)",
        examples=["example.org", "*.example.org", "localhost:8080"],
    ),
]


BackendName = Literal["auto", "bubblewrap", "landlock", "sandbox-exec", "docker"]


class SandboxFilesystemConfig(Table, frozen=True, kw_only=True):
    """Files that confined programs may use; a path may begin with `~`, or in the project."""

    allow_write: Annotated[
        list[SandboxPath], Meta(description="Further folders and files that may be changed.")
    ] = []
    deny_write: Annotated[
        list[SandboxPath], Meta(description="What may not be changed in folders that may.")
    ] = []
    deny_read: Annotated[
        list[SandboxPath], Meta(description="Further folders and files that are not seen.")
    ] = []
    allow_read: Annotated[
        list[SandboxPath], Meta(description="What is seen although it is hidden otherwise.")
    ] = []


class SandboxNetworkConfig(Table, frozen=True, kw_only=True):
    """Hosts that confined programs may reach: a name, `*.name` for all below it, and a port."""

    allowed_domains: Annotated[
        list[Domain], Meta(description="Hosts that may be reached. Empty: none.")
    ] = []
    denied_domains: Annotated[
        list[Domain], Meta(description="Hosts that may not be reached, whatever else is said.")
    ] = []


class SandboxLimitsConfig(Table, frozen=True, kw_only=True):
    """What one confined command may take."""

    processes: Annotated[
        int, Meta(ge=16, le=4_000_000, description="Processes and threads at the same time.")
    ] = 4_096
    memory_bytes: Annotated[
        Annotated[int, Meta(ge=50_000_000)] | None,
        Meta(description="Memory of one process. Without it three quarters of the machine's."),
    ] = None
    file_bytes: Annotated[
        int, Meta(ge=1_000_000, description="The largest file that it may write.")
    ] = 20_000_000_000


class SandboxConfig(Table, frozen=True, kw_only=True):
    """How commands are confined."""

    enabled: Annotated[bool, Meta(description="Confine commands where the system can.")] = True
    backend: Annotated[
        BackendName, Meta(description="What confines them; `auto` takes the first that works here.")
    ] = "auto"
    image: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9]", examples=["python:3.13"])] | None,
        Meta(description="The image of containers, with `docker`."),
    ] = None
    fail_if_unavailable: Annotated[
        bool, Meta(description="Run no command at all where the system cannot confine it.")
    ] = False
    hooks: Annotated[
        bool, Meta(description="Confine your own hooks, too. Those of a project always are.")
    ] = True
    auto_allow: Annotated[
        bool, Meta(description="Run confined commands without a question where they can be undone.")
    ] = False
    mcp_servers: Annotated[
        bool, Meta(description="Confine programs of MCP servers that do not say so themselves.")
    ] = False
    excluded_commands: Annotated[
        list[Annotated[str, Meta(min_length=1, examples=["docker", "git push:*"])]],
        Meta(description="Commands that run outside the sandbox, as in `Bash(…)` of a rule."),
    ] = []
    filesystem: SandboxFilesystemConfig = SandboxFilesystemConfig()
    network: SandboxNetworkConfig = SandboxNetworkConfig()
    limits: SandboxLimitsConfig = SandboxLimitsConfig()
