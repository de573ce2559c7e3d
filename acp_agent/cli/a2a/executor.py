"""Execute the tasks of A2A clients: each is a turn, each context a session of the journal."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from a2a.helpers import get_data_parts, new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskStore, TaskUpdater
from a2a.types import ListTasksRequest, Message, Part, Task, TaskState, TaskStatus
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError

from acp_agent.cli.localization import translate
from acp_agent.cli.serving.prompt_run import (
    CallStarted,
    PromptOptions,
    PromptRun,
    Question,
    SessionOpened,
    TextPiece,
    TurnEnd,
)
from protocol.v1 import types as acp

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MODES = ("ask", "accept-edits", "draft", "plan")  # that a client may choose
_MAX_TURNS = 4  # concurrent turns
_PAGE_SIZE = 100  # tasks per page
_SESSION = "session"  # metadata key of a task's session
_ANSWER = "answer"  # ID of the artifact with the model's text
_ALLOW = frozenset({"allow", "approve", "approved", "ok", "okay", "y", "yes", "允许", "是"})
_REJECT = frozenset({"deny", "n", "no", "refuse", "reject", "rejected", "否", "拒绝"})
_OPEN_STATES = (
    TaskState.TASK_STATE_SUBMITTED,
    TaskState.TASK_STATE_WORKING,
    TaskState.TASK_STATE_INPUT_REQUIRED,
)


class PromptExecutor(AgentExecutor):
    """Runs the agent on the messages of clients.

    Args:
        folders: folders it may work in: absolute paths without symlinks.
        model: the model of new sessions; None for the configured one.
    """

    def __init__(self, folders: Sequence[Path], model: str | None, store: TaskStore) -> None:
        self._folders = tuple(folders)
        self._flags = [] if model is None else ["--model", model]
        self._store = store
        self._running = asyncio.Semaphore(_MAX_TURNS)
        self._turns: dict[str, PromptRun] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Start or continue the task of a message, until it ends or waits for the client.

        Raises:
            A2AError: the message is not accepted.
        """
        message, task = context.message, context.task_id
        assert message is not None
        assert task is not None
        updater = TaskUpdater(event_queue, task, context.context_id or "")
        turn = self._turns.get(task)
        if turn is None:
            options = await self._turn_options(context, message)
            if context.current_task is None:
                new_task = new_task_from_user_message(message)
                new_task.id, new_task.context_id = task, updater.context_id
                await event_queue.enqueue_event(new_task)
            turn = self._turns[task] = PromptRun(options, self._running)
        elif turn.waits:
            allow = read_answer(message)
            if allow is None:
                hint = translate("Reply allow or reject.")
                await updater.requires_input(updater.new_agent_message([Part(text=hint)]))
                return
            turn.answer(allow=allow)
        await updater.start_work()
        await self._follow(task, turn, updater)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the turn of a task."""
        task = context.task_id
        assert task is not None
        turn = self._turns.pop(task, None)
        if turn is not None:
            await turn.aclose()
        await TaskUpdater(event_queue, task, context.context_id or "").cancel()

    async def aclose(self) -> None:
        """End all turns."""
        turns, self._turns = list(self._turns.values()), {}
        await asyncio.gather(*(turn.aclose() for turn in turns))

    async def end_lost_tasks(self) -> None:
        """Mark the tasks as failed that were open when the previous server ended."""
        context = ServerCallContext()
        for state in _OPEN_STATES:
            # Marked tasks are not listed again.
            while tasks := (
                await self._store.list(
                    ListTasksRequest(status=state, page_size=_PAGE_SIZE), context
                )
            ).tasks:
                for task in tasks:
                    stored_task = await self._store.get(task.id, context)
                    if stored_task is not None:
                        stored_task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_FAILED))
                        await self._store.save(stored_task, context)

    async def _follow(self, task: str, turn: PromptRun, updater: TaskUpdater) -> None:
        """Report the events of a turn to the client."""
        while True:
            text = ""
            for event in await turn.next():
                if isinstance(event, TextPiece):
                    text += ("\n\n" if event.starts_message else "") + event.text
                    continue
                if text:
                    await _stream(turn, updater, text)
                    text = ""
                match event:
                    case SessionOpened(session=session):
                        await updater.update_status(
                            TaskState.TASK_STATE_WORKING, metadata={_SESSION: session}
                        )
                    case CallStarted(title=title):
                        await updater.start_work(updater.new_agent_message([Part(text=title)]))
                    case Question(text=question):
                        hint = translate("Reply allow or reject.")
                        reply = Part(text=f"{question}\n\n{hint}")
                        await updater.requires_input(updater.new_agent_message([reply]))
                        return
                    case TurnEnd():
                        del self._turns[task]
                        await _end(event, updater)
                        return
            if text:
                await _stream(turn, updater, text)

    async def _turn_options(self, context: RequestContext, message: Message) -> PromptOptions:
        metadata = dict(message.metadata)
        mode = metadata.get("mode")
        if mode is not None and mode not in MODES:
            raise InvalidParamsError(message=f"metadata.mode: expected one of {', '.join(MODES)}")
        cwd = await asyncio.to_thread(self._folder, metadata.get("folder", ""))
        request = ListTasksRequest(context_id=context.context_id or "", page_size=_PAGE_SIZE)
        tasks: Sequence[Task] = (await self._store.list(request, context.call_context)).tasks
        sessions = (dict(task.metadata).get(_SESSION, "") for task in tasks)
        session = next(filter(None, sessions), "")
        return PromptOptions(
            flags=self._flags,
            cwd=cwd,
            session=session,
            mode=mode,
            prompt=list(prompt_blocks(message.parts)),
        )

    def _folder(self, name: object) -> Path:
        if not isinstance(name, str):
            raise InvalidParamsError(message="metadata.folder: expected a text")
        folder = Path(os.path.realpath(self._folders[0] / name))
        if not any(folder.is_relative_to(root) for root in self._folders):
            roots = ", ".join(map(str, self._folders))
            raise InvalidParamsError(message=f"{folder} is not served; served are {roots}")
        if not folder.is_dir():
            raise InvalidParamsError(message=f"{folder} is not a directory")
        return folder


async def _stream(turn: PromptRun, updater: TaskUpdater, text: str) -> None:
    part = Part(text=text, media_type="text/markdown")
    await updater.add_artifact([part], _ANSWER, _ANSWER, append=turn.has_sent_text)
    turn.has_sent_text = True


async def _end(event: TurnEnd, updater: TaskUpdater) -> None:
    if event.error:
        await updater.failed(updater.new_agent_message([Part(text=event.error)]))
    elif event.stop_reason == "cancelled":
        await updater.cancel()
    elif event.stop_reason == "end_turn":
        await updater.complete()
    else:
        reason = translate("The turn ended early: {reason}", reason=event.stop_reason)
        await updater.failed(updater.new_agent_message([Part(text=reason)]))


def read_answer(message: Message) -> bool | None:
    """Return whether a message allows the call; None if it is neither a yes nor a no."""
    for part in message.parts:
        if part.HasField("data"):
            (fields,) = get_data_parts([part])
            if isinstance(fields, dict) and isinstance(fields.get("allow"), bool):
                return bool(fields["allow"])
        words = part.text.lower().split()
        word = words[0].strip(".,!。，！") if words else ""
        if word in _ALLOW | _REJECT:
            return word in _ALLOW
    return None


def prompt_blocks(parts: Sequence[Part]) -> Iterator[acp.ContentBlock]:
    """Yield the parts of a message as a prompt.

    Raises:
        ContentTypeNotSupportedError: a part is neither text, data, a link nor an image.
    """
    for part in parts:
        kind = part.media_type.partition(";")[0].strip().lower()
        if part.HasField("data"):
            (data,) = get_data_parts([part])
            yield acp.TextContent(text=json.dumps(data, ensure_ascii=False))
        elif part.HasField("url"):
            yield acp.ResourceLink(uri=part.url, name=part.filename or part.url)
        elif part.HasField("raw") and kind in IMAGES:
            yield acp.ImageContent(data=base64.b64encode(part.raw).decode(), mime_type=kind)
        elif part.HasField("raw"):
            try:
                yield acp.TextContent(text=part.raw.decode())
            except UnicodeDecodeError:
                raise ContentTypeNotSupportedError(
                    message=f"{part.media_type or 'a part without a media type'}: only text and "
                    f"{', '.join(IMAGES)} can be read"
                ) from None
        else:
            yield acp.TextContent(text=part.text)
