"""Call a tool that a server runs only as a task, and wait for its result.

Source: Model Context Protocol 2025-11-25, Tasks (experimental).
"""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT

_TIME_TO_LIVE = 3_600_000  # milliseconds that the server keeps the task
_MIN_PAUSE, _DEFAULT_PAUSE, _MAX_PAUSE = 0.1, 1.0, 10.0  # seconds between two looks at the task
_CANCEL_SECONDS = 2.0  # for the server to learn of a cancellation


def runs_only_as_task(tool: types.Tool) -> bool:
    """Return whether the server refuses a plain call of a tool."""
    return tool.execution is not None and tool.execution.task_support == "required"


async def call_as_task(
    session: ClientSession,
    name: str,
    arguments: dict[str, Any],
    on_progress: ProgressFnT,
    meta: types.RequestParamsMeta | None,
) -> types.CallToolResult:
    """Call a tool as a task; report its status messages as progress.

    If the caller is cancelled, the task is cancelled at the server.

    Raises:
        MCPError: the server answered with an error, or is disconnected.
        ValueError: its answer has the wrong shape.
    """
    request = types.CallToolRequest(
        params=types.CallToolRequestParams(
            name=name,
            arguments=arguments,
            task=types.TaskMetadata(ttl=_TIME_TO_LIVE),
            _meta=meta,
        )
    )
    task = (await session.send_request(request, types.CreateTaskResult)).task
    identity = task.task_id
    try:
        while task.status == "working":
            if task.status_message:
                await on_progress(0.0, None, task.status_message)
            milliseconds = task.poll_interval or _DEFAULT_PAUSE * 1_000
            await asyncio.sleep(min(max(milliseconds / 1_000, _MIN_PAUSE), _MAX_PAUSE))
            state = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=identity))
            task = await session.send_request(state, types.GetTaskResult)
        # A task that waits for the user asks while its result is awaited.
        payload = types.GetTaskPayloadRequest(
            params=types.GetTaskPayloadRequestParams(task_id=identity)
        )
        return await session.send_request(payload, types.CallToolResult)
    except asyncio.CancelledError:
        cancel = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=identity))
        try:
            async with asyncio.timeout(_CANCEL_SECONDS):
                await session.send_request(cancel, types.CancelTaskResult)
        except (MCPError, ValueError, TimeoutError):
            pass  # it has ended, or the server is gone
        raise
