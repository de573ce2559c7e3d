"""Make the record of a session from its journal."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent import __version__
from acp_agent.agent.context import Context
from acp_agent.config.types import Config
from acp_agent.events import (
    USER_CALL,
    AnyEvent,
    ChildWorked,
    ConfigChanged,
    HookAnswered,
    ModelAnswered,
    ModelAsked,
    PermissionDecided,
    ServerTool,
    ServerToolsOffered,
    TurnInterrupted,
    TurnStarted,
    unwrap_child_event,
)
from acp_agent.ids import MessageId
from acp_agent.models.base import Message, ModelInfo
from acp_agent.permissions.access import Grant
from acp_agent.replay.model import without_prices
from acp_agent.replay.normal_form import Folders, Normaliser, arrange
from acp_agent.replay.record import FORMAT, SETTINGS, VERSION, Head, Record, RecordedRequest, Step
from acp_agent.replay.replay import Replayed
from acp_agent.tools.spec import ToolSpec
from acp_agent.workspace.scrub import find_keys, scrub

_MAX_KEYS = 100  # found by their format
_GRANT = re.compile(r"\(answer ([0-9a-f]{8})\)")  # in the rule of a decision
_LINE_BREAK = re.compile(r"\\[nrt]")  # in JSON


class Recorded(Struct, frozen=True, kw_only=True):
    """The setup of the agent, which the journal does not contain."""

    config: Config
    language: str
    confined: bool
    memory: bool
    grants: Sequence[Grant]  # the remembered answers of the project
    folders: Sequence[tuple[str, str]]  # with their placeholders
    files: Mapping[str, str]  # by path


def make_record(
    events: Sequence[AnyEvent],
    recorded: Recorded,
    *,
    models: Sequence[ModelInfo],
    secrets: Sequence[str],
) -> Record:
    """Return the record of a session, without secrets. Blocks.

    An interrupted turn and everything after it is left out.

    Args:
        recorded: the setup of the agent.
        secrets: values that the record must not contain.
    """
    folders = Folders(*recorded.folders)
    # A key that only its format shows may occur in another encoding, too.
    texts = _LINE_BREAK.sub(" ", msgspec.json.encode(events).decode())
    keys = find_keys(texts)
    values = (*secrets, *sorted(keys)[:_MAX_KEYS])

    def clean(text: str) -> str:
        return scrub(folders.hide(text), values)

    normal = Normaliser(clean)
    events = _before_interruption(events)
    relevant = arrange(events)
    requests = _requests(relevant)
    steps: list[Step] = []
    previous: dict[str, tuple[Message, ...]] = {}
    for event, request in zip(relevant, requests, strict=True):
        normal_event = normal.value(event, AnyEvent)
        if request is None:
            steps.append(Step(event=normal_event))
            continue
        session = event.session if isinstance(event, ChildWorked) else ""
        messages = normal.messages(request)
        previous_messages = previous.get(session, ())
        previous[session] = messages
        shared = _shared_count(previous_messages, messages)
        recorded_request = RecordedRequest(kept=shared, messages=messages[shared:])
        steps.append(Step(event=normal_event, request=recorded_request))
    head = Head(
        format=FORMAT,
        version=VERSION,
        agent=__version__,
        system_name=platform.system(),
        language=recorded.language,
        confined=recorded.confined,
        reversible=recorded.config.checkpoints.enabled,
        memory=recorded.memory,
        settings={
            name: normal.value({"value": value})["value"]
            for name, value in _settings(recorded.config)
        },
        models=tuple(without_prices(model) for model in models),
        fallbacks=tuple(recorded.config.fallback_models),
        files={clean(path): normal.text(text) for path, text in recorded.files.items()},
        server_tools=tuple(normal.value(tool) for tool in _server_tools(events)),
        hooks=tuple(normal.value(event) for event in events if isinstance(event, HookAnswered)),
        grants=tuple(
            normal.value(replace(grant, project=""))
            for grant in _earlier_grants(events, recorded.grants)
        ),
    )
    return Record(head=head, steps=tuple(steps))


def _server_tools(events: Sequence[AnyEvent]) -> Iterable[ServerTool]:
    """Return the tools of MCP servers, each as it was last."""
    tools: dict[str, ServerTool] = {}
    for event in events:
        if isinstance(event, ServerToolsOffered):
            tools |= {tool.name: tool for tool in event.tools}
    return tools.values()


def _earlier_grants(events: Sequence[AnyEvent], grants: Sequence[Grant]) -> Iterable[Grant]:
    """Return the grants that decided in a session before it added them, if it did."""
    added: set[str] = set()
    used: set[str] = set()
    for event in map(unwrap_child_event, events):
        if isinstance(event, PermissionDecided):
            used.update(set(_GRANT.findall(event.rule)) - added)
            added.update(event.remembered)
    return [grant for grant in grants if grant.id in used]


def add_observed_requests(record: Record, replayed: Replayed) -> Record:
    """Return a record with data of the requests that the journal lacks, such as tools."""
    requests_by_number = {
        observed.answer.number: observed.request
        for observed, _ in replayed.requests
        if observed.answer is not None
    }
    tools: dict[str, ToolSpec] = {}
    steps: list[Step] = []
    number = 0
    for step in record.steps:
        if step.request is None:
            steps.append(step)
            continue
        number += 1
        request = requests_by_number.get(number)
        if request is None:
            steps.append(step)
            continue
        for tool in request.tools:
            tools.setdefault(tool.name, tool)
        recorded_request = replace(
            step.request,
            tools=tuple(tool.name for tool in request.tools),
            thought_level=request.thought_level,
            web_search=request.web_search,
        )
        steps.append(replace(step, request=recorded_request))
    head = replace(record.head, tools=tuple(tools.values()))
    return Record(head=head, steps=tuple(steps))


def used_models(events: Sequence[AnyEvent]) -> list[str]:
    """Return the names of the models of a session, in order of first use."""
    names: dict[str, None] = {}
    for event in events:
        inner = event.did if isinstance(event, ChildWorked) else event
        match inner:
            case ConfigChanged() if inner.option == "model":
                names.setdefault(inner.value)
            case ModelAsked():
                names.setdefault(inner.model)
    return list(names)


def _before_interruption(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    for index, event in enumerate(events):
        if isinstance(event, TurnInterrupted):
            starts = [
                position for position in range(index) if isinstance(events[position], TurnStarted)
            ]
            return list(events[: starts[-1]] if starts else events[:index])
    return list(events)


def _requests(events: Sequence[AnyEvent]) -> Iterator[tuple[Message, ...] | None]:
    """Yield for each event the messages of its request; None if it has no request."""
    contexts: dict[str, Context] = {}
    answered = _answered_by_models(events)
    for event in events:
        session, inner = "", event
        if isinstance(event, ChildWorked):
            session, inner = event.session, event.did
        context = contexts.setdefault(session, Context())
        context.feed([inner])
        if isinstance(inner, ModelAsked) and inner.message in answered:
            yield tuple(context.messages)
        else:
            yield None


def _answered_by_models(events: Sequence[AnyEvent]) -> set[MessageId]:
    """Return the messages that a model wrote, without those of calls by the user."""
    inner_events = [event.did if isinstance(event, ChildWorked) else event for event in events]
    by_user = {
        inner.message
        for inner in inner_events
        if isinstance(inner, ModelAnswered) and inner.stop == USER_CALL
    }
    return {inner.message for inner in inner_events if isinstance(inner, ModelAsked)} - by_user


def _shared_count(previous: tuple[Message, ...], messages: tuple[Message, ...]) -> int:
    count = 0
    for old, new in zip(previous, messages, strict=False):
        if old != new:
            break
        count += 1
    return count


def _settings(config: Config) -> Iterator[tuple[str, object]]:
    default = Config()
    for name in SETTINGS:
        value = getattr(config, name)
        if value != getattr(default, name):
            yield name, msgspec.to_builtins(value)
