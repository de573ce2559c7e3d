"""Titles of sessions: from the first prompt, the small model, the user, or a fork's source."""

from __future__ import annotations

import asyncio
import re

import msgspec

from acp_agent.agent.context import Context
from acp_agent.agent.resources import TurnResources
from acp_agent.content import TextBlock
from acp_agent.errors import InvalidInputError, ModelError
from acp_agent.events import TitleChanged, UserMessage
from acp_agent.models.base import ModelRequest, UserSide, UserText
from acp_agent.session.core import SessionCore
from acp_agent.session.store.event_codec import replace_surrogates

_MAX_LENGTH = 200  # characters of a title by the user
_MAX_FIRST_LENGTH = 80  # characters of a title from the first prompt
_MAX_MODEL_LENGTH = 80  # characters of a title by a model
_SECONDS = 30.0  # for which the model's title is awaited
_MAX_EXCERPT = 2_000  # characters of the prompt and of the answer that the model is sent, each
_MAX_ANSWER_TOKENS = 1_000  # tokens; some models reason first

_FORK = re.compile(r" \(fork(?: (\d{1,4}))?\)$")


def first_title(prompt: UserMessage) -> str | None:
    """Return the first line of a prompt, shortened; None if it has no text."""
    for block in prompt.content:
        if isinstance(block, TextBlock) and block.text.strip():
            beginning = block.text.strip()[:_MAX_EXCERPT]
            return _shorten(beginning.splitlines()[0].strip(), _MAX_FIRST_LENGTH)
    return None


def tidy_title(title: str) -> str:
    """Return a title as one stripped line of at most 200 characters.

    Raises:
        InvalidInputError: the result is empty.
    """
    line = "".join(char if char.isprintable() else " " for char in replace_surrogates(title))
    line = " ".join(line.split())
    if not line:
        raise InvalidInputError("title: it is empty; give at least one character", field="title")
    return _shorten(line, _MAX_LENGTH)


def fork_title(title: str) -> str:
    """Return the title of a fork: its source's with " (fork)", numbered for forks of forks."""
    mark = " (fork)"
    match = _FORK.search(title)
    if match is not None:
        title = title[: match.start()]
        mark = f" (fork {int(match[1] or 1) + 1})"
    return _shorten(title, _MAX_LENGTH - len(mark)) + mark


def _shorten(line: str, limit: int) -> str:
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


async def improve_title(
    core: SessionCore, turn: TurnResources, first: UserMessage, title: str
) -> None:
    """Ask the small model for a better title than `title` after the first turn.

    Does nothing if the small model is the main model, which is too expensive for a title. A title
    that is set in the meantime is not replaced.

    Raises:
        AcpAgentError: the model failed or took too long; the title is unchanged.
    """
    from acp_agent.agent.side_requests import ask_side_request  # noqa: PLC0415 - for prompts only

    small = turn.models.small
    if small.ref == turn.models.current.ref:
        return
    from importlib.resources import files  # noqa: PLC0415 - takes 8 ms

    request = ModelRequest(
        model=msgspec.structs.replace(small, max_output=min(small.max_output, _MAX_ANSWER_TOKENS)),
        system=(files(__package__) / "naming.md").read_text("utf-8").strip(),
        messages=(UserSide((UserText(_excerpt(core.context, first)),)),),
        thought_level=next(iter(small.thought_levels), None),
    )
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await ask_side_request(turn, request)
    except TimeoutError:
        raise ModelError("the title took too long", provider=small.provider) from None
    await core.flush()  # including a title that was just set
    better = _parse_title(core.clean(answer))
    if better and core.state.title == title:
        await core.emit(TitleChanged(title=better))


def _excerpt(context: Context, first: UserMessage) -> str:
    prompt = "\n".join(block.text for block in first.content if isinstance(block, TextBlock))
    answer = context.last_answer[:_MAX_EXCERPT]
    return f"<user>\n{prompt[:_MAX_EXCERPT]}\n</user>\n<agent>\n{answer}\n</agent>"


def _parse_title(answer: str) -> str:
    """Return the title in an answer; "" if there is no usable one."""
    lines = [line.strip().strip("#*\"'`“”「」《》").strip() for line in answer.strip().splitlines()]
    line = next(filter(None, lines), "").removeprefix("Title:").strip().rstrip(".。")
    try:
        title = tidy_title(line)
    except InvalidInputError:
        return ""
    return title if len(title) <= _MAX_MODEL_LENGTH else ""
