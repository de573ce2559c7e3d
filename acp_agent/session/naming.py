"""A better title than the user's first words, by the small model, when the first turn is over."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from acp_agent.agent.side_requests import ask_aside
from acp_agent.content import TextBlock
from acp_agent.errors import InvalidInputError, ModelError
from acp_agent.events import TitleChanged, UserMessage
from acp_agent.models.base import AnswerText, ModelRequest, ModelSide, UserSide, UserText
from acp_agent.session.titles import tidy_title
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:
    from acp_agent.session.session import Session
    from acp_agent.session.turn_host import SessionHost

_SECONDS = 30.0  # a title that takes longer is not worth it
_LONGEST = 80  # characters
_SAID = 2_000  # characters of what the user and the agent said that are looked at, each
_ANSWER = 1_000  # tokens; some models reason first


async def name(session: Session, host: SessionHost, first: UserMessage, title: str) -> None:
    """Give a session a better title than `title`, unless somebody gives it another meanwhile.

    Only where a model of its own is there for side work: a title is not worth the main one's price.

    Raises:
        AcpAgentError: the model failed, or took too long; the title stays as it is.
    """
    small = host.small_model
    if small.ref == host.model.ref:
        return
    request = ModelRequest(
        model=msgspec.structs.replace(small, max_output=min(small.max_output, _ANSWER)),
        system=(files(__package__) / "naming.md").read_text("utf-8").strip(),
        messages=(UserSide((UserText(_excerpt(host, first)),)),),
        thought_level=next(iter(small.thought_levels), None),
    )
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await ask_aside(host, request)
    except TimeoutError:
        raise ModelError("a title took too long", provider=small.provider) from None
    await session.settled()  # with a title that somebody gave a moment ago
    better = _tidy(scrub(answer, host.secrets))
    if better and session.state.title == title:
        await session.emit(TitleChanged(title=better))


def _excerpt(host: SessionHost, first: UserMessage) -> str:
    said = "\n".join(block.text for block in first.content if isinstance(block, TextBlock))
    answers = [
        part.text
        for entry in host.context.entries
        if isinstance(entry.message, ModelSide)
        for part in entry.message.parts
        if isinstance(part, AnswerText)
    ]
    told = "".join(answers[-1:])
    return f"<user>\n{said[:_SAID]}\n</user>\n<agent>\n{told[:_SAID]}\n</agent>"


def _tidy(answer: str) -> str:
    """The title in an answer; "" where there is none that one would want."""
    lines = [line.strip().strip("#*\"'`“”「」《》").strip() for line in answer.strip().splitlines()]
    line = next((one for one in lines if one), "").removeprefix("Title:").strip().rstrip(".。")
    try:
        title = tidy_title(line)
    except InvalidInputError:
        return ""
    return title if len(title) <= _LONGEST else ""
