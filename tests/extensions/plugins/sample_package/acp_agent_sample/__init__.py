"""A plugin with a tool, a hook and a model, as its authors would write it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from acp_agent.api import (
    Finished,
    Hook,
    ModelProvider,
    ModelRequest,
    Plugin,
    StreamEvent,
    TextDelta,
    Tool,
    ToolContext,
    ToolError,
)


async def count_words(arguments: Mapping[str, Any], context: ToolContext) -> str:
    path = context.cwd / arguments["path"]
    if not path.is_file():
        raise ToolError(f"{arguments['path']}: there is no such file")
    if arguments["path"] == "broken.txt":
        raise RuntimeError("out of order")
    await context.output("counting\n")
    return f"{len(path.read_text('utf-8').split())} words"


async def refuse_secret(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if "secret" not in str(event["tool_input"]):
        return None
    return {"decision": "block", "reason": "the sample refuses that"}


class EchoDriver:
    """Answers with how many messages it was sent."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        yield [TextDelta(f"echo of {len(request.messages)} by {request.model.id}")]
        yield [Finished(stop="end_turn")]

    async def connect(self) -> None:
        """Open nothing."""

    async def aclose(self) -> None:
        """Close nothing."""


plugin = Plugin(
    name="sample",
    tools=(
        Tool(
            name="count_words",
            description="Counts the words of a file of the project.",
            parameters={
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
            },
            run=count_words,
            reads_only=True,
        ),
    ),
    hooks=(Hook(event="PreToolUse", run=refuse_secret),),
    models=(ModelProvider(name="echo", driver=lambda key: EchoDriver()),),
)
