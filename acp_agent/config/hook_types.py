"""The types of the hooks table in the user's configuration."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from acp_agent.config.policy_types import Table

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "PermissionDenied",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "Setup",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "InstructionsLoaded",
    "FileChanged",
    "CwdChanged",
    "DirectoryAdded",
    "MessageDisplay",
]


class HookConfig(
    Table,
    frozen=True,
    kw_only=True,
    rename={"condition": "if", "runs_async": "async", "rewakes": "async_rewake"},
):
    """A hook: a program that is run, or an address, a model or an MCP server asked, at an event."""

    matcher: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="Which tools it is for: names with | between them, or a regular expression."
            " Empty: all.",
        ),
    ] = ""
    command: Annotated[str, Meta(description="The program, as a line for the shell.")] = ""
    args: Annotated[
        list[str] | None,
        Meta(description="Arguments of the program; it is started without a shell then."),
    ] = None
    url: Annotated[
        str, Meta(pattern=r"^$|^https?://", description="The address to send the event to.")
    ] = ""
    prompt: Annotated[
        str, Meta(description="What a model is asked; $ARGUMENTS stands for the event as JSON.")
    ] = ""
    agent: Annotated[
        bool, Meta(description="The model that is asked may read the project's files to check.")
    ] = False
    model: Annotated[str, Meta(description="The model that is asked. Empty: the small one.")] = ""
    continue_on_block: Annotated[
        bool, Meta(description="Where the model says no after a call, the turn goes on.")
    ] = False
    server: Annotated[str, Meta(description="The MCP server of which a tool is called.")] = ""
    tool: Annotated[str, Meta(description="The tool.")] = ""
    input: Annotated[
        dict[str, Any],
        Meta(description="Its arguments; ${tool_input.path} stands for what the event has there."),
    ] = {}
    headers: Annotated[
        dict[str, str], Meta(description="HTTP headers; $NAME is a variable of the environment.")
    ] = {}
    condition: Annotated[
        str, Meta(description='A rule that the call must match, like "Bash(git push:*)".')
    ] = ""
    timeout: Annotated[float, Meta(gt=0, le=3_600, description="Seconds that it may take.")] = 60.0
    runs_async: Annotated[bool, Meta(description="Nothing waits for it.")] = False
    rewakes: Annotated[
        bool, Meta(description="Nothing waits for it; if it refuses, the model goes on with that.")
    ] = False
    once: Annotated[bool, Meta(description="It runs once in a session.")] = False
    on_failure: Annotated[
        Literal["continue", "block"],
        Meta(description="What becomes of the action where the hook itself fails."),
    ] = "continue"
    sandbox: Annotated[bool, Meta(description="It runs confined, as commands do.")] = True
