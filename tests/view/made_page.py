"""Pages of events that a test makes up.

dom = page_of(said("Hi"), ended())          # a BeautifulSoup of the page
page = data_of((0, begun()), (250, …))      # its data; numbers are milliseconds since BEGAN
"""

from __future__ import annotations

from collections.abc import Sequence

from bs4 import BeautifulSoup
from bs4.element import Tag

from acp_agent.config.localization import Language
from acp_agent.content import ContentBlock, TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    ToolCalled,
    ToolKind,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.session.store.records import SessionRecord, StoredEvent, UnknownEvent
from acp_agent.view.html import render
from acp_agent.view.page import Page
from acp_agent.view.reader import read_page

BEGAN = 1_760_000_000_000  # 2025-10-09T08:53:20Z
SECRET = "open-sesame-0123456789"
Made = AnyEvent | UnknownEvent
Timed = Made | tuple[int, Made]


def begun(turn: str = "turn_1") -> TurnStarted:
    """A turn begins."""
    return TurnStarted(turn=TurnId(turn))


def ended(turn: str = "turn_1", **how: object) -> TurnEnded:
    """A turn ends, well unless `how` says otherwise."""
    fields: dict[str, object] = how or {"stop_reason": "end_turn"}
    return TurnEnded(turn=TurnId(turn), **fields)  # type: ignore[arg-type]  # fields of the event


def said(*content: str | ContentBlock, message: str = "msg_u1", local: bool = False) -> UserMessage:
    """The user says something."""
    blocks = tuple(TextBlock(text=one) if isinstance(one, str) else one for one in content)
    return UserMessage(message=MessageId(message), content=blocks, local=local)


def answered(text: str, message: str = "msg_a1") -> AgentText:
    """A piece of an answer."""
    return AgentText(message=MessageId(message), text=text)


def asked(message: str = "msg_a1", model: str = "openai/gpt-5") -> ModelAsked:
    """A request goes to a model."""
    return ModelAsked(message=MessageId(message), model=model)


def took(
    usage: Usage,
    cost: float | None,
    message: str = "msg_a1",
    *,
    complete: bool = True,
    discarded: bool = False,
) -> ModelAnswered:
    """A request is answered."""
    return ModelAnswered(
        message=MessageId(message),
        model="openai/gpt-5",
        usage=usage,
        cost=cost,
        complete=complete,
        discarded=discarded,
    )


def called(
    title: str = "Edit a.py",
    arguments: str = "{}",
    *,
    call: str = "call_1",
    name: str = "edit",
    kind: ToolKind = "edit",
) -> ToolCalled:
    """The model calls a tool."""
    return ToolCalled(
        call=CallId(call),
        message=MessageId("msg_a1"),
        name=name,
        arguments=arguments,
        title=title,
        kind=kind,
    )


def stored(events: Sequence[Timed]) -> list[StoredEvent]:
    """Events as the store has them; one without a time comes a second after the one before."""
    kept: list[StoredEvent] = []
    at = -1_000
    for event in events:
        at, event = event if isinstance(event, tuple) else (at + 1_000, event)  # noqa: PLW2901
        kept.append(StoredEvent(len(kept) + 1, BEGAN + at, event))
    return kept


def data_of(*events: Timed, title: str | None = "A title", cwd: str = "/work") -> Page:
    """The data of the page of events."""
    record = SessionRecord(
        id=SessionId("sess_1"), cwd=cwd, title=title, created_at=BEGAN, updated_at=BEGAN + 60_000
    )
    return read_page(record, stored(events), secrets=[SECRET])


def html_of(page: Page, language: Language = "en") -> str:
    """The file of a page."""
    return "".join(render(page, language=language))


def page_of(*events: Timed, title: str | None = "A title", cwd: str = "/work") -> BeautifulSoup:
    """The page of events, read by a parser."""
    return parsed(html_of(data_of(*events, title=title, cwd=cwd)))


def parsed(html: str) -> BeautifulSoup:
    """A page, read by a parser."""
    return BeautifulSoup(html, "html.parser")


def one(dom: BeautifulSoup | Tag, selector: str) -> Tag:
    """The only element that a selector finds."""
    found = dom.select(selector)
    assert len(found) == 1, (selector, len(found))
    return found[0]


def attribute(element: Tag, name: str) -> str:
    """An attribute that is one text (`class` and `rel` are lists)."""
    value = element[name]
    assert isinstance(value, str), (name, value)
    return value


def words_of(element: Tag) -> str:
    """The text of an element in one line."""
    return " ".join(element.get_text(" ").split())
