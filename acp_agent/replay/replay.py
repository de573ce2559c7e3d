"""Replay a record: the real agent and protocol, with recorded answers, results and user input.

Nothing leaves the process: it runs no commands, makes no network requests, and writes files only
below a temporary folder (`acp_agent.replay.confinement`).
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.checkpoint_types import CheckpointsConfig
from acp_agent.config.paths import HOME_VARIABLE, find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError, InvalidInputError
from acp_agent.events import (
    AnyEvent,
    BackgroundCommandChanged,
    ConfigChanged,
    HookAnswered,
    Rewound,
    SessionForked,
    UserMessage,
)
from acp_agent.ids import SessionId
from acp_agent.models.base import Message
from acp_agent.permissions.access import Gate
from acp_agent.permissions.grants import GrantStore
from acp_agent.platform.decoding import convert
from acp_agent.replay.calls import RecordedCalls
from acp_agent.replay.client import ReplayClient
from acp_agent.replay.comparison import Difference, compare_events, compare_values
from acp_agent.replay.confinement import confined
from acp_agent.replay.hooks import ReplayedHooks
from acp_agent.replay.model import Observed, ReplayDriver, ReplayModels
from acp_agent.replay.normal_form import Folders, Normaliser, arrange, map_texts
from acp_agent.replay.record import SETTINGS, Head, Record, Step
from acp_agent.replay.script import Action, End, Reopened, Script
from acp_agent.sandbox.launch import Launch, SandboxedProgram
from acp_agent.sandbox.policy import TEMPORARY, SandboxPolicy
from acp_agent.sandbox.sandbox import Sandbox, Unavailable
from acp_agent.server.core import Core
from acp_agent.session.account import Account
from acp_agent.session.sandboxes import SharedSandboxes
from acp_agent.session.services import Services
from acp_agent.session.store.event_codec import recovered_events
from acp_agent.session.store.store import Store
from acp_agent.tools.spec import ToolSpec
from acp_agent.trust.store import TrustStore
from acp_agent.workspace.git_repositories import GitRepositories, Repository
from acp_agent.workspace.scrub import scrub

_log = logging.getLogger(__name__)
_MAX_DIFFERENCES = 20  # differences; most of the later ones are consequences


class Replayed(Struct, frozen=True, kw_only=True):
    """The result of a replay: normalised events, requests with messages, and differences."""

    events: tuple[AnyEvent, ...]
    requests: tuple[tuple[Observed, tuple[Message, ...]], ...]
    turns: int
    differences: tuple[Difference, ...]


def replay(record: Record) -> Replayed:
    """Replay a record in a temporary folder and compare the result with it. Blocks.

    Raises:
        InvalidInputError: the record cannot be replayed because it is inconsistent.
    """
    with tempfile.TemporaryDirectory(
        prefix="acp-agent-replay-", ignore_cleanup_errors=True
    ) as temporary:
        base = Path(temporary).resolve()
        try:
            with confined(base):
                return asyncio.run(_replay(record, base))
        except RecursionError:
            raise InvalidInputError("the record is nested too deeply", field="file") from None


async def _replay(record: Record, base: Path) -> Replayed:
    folder, home = base / "project", base / "home"
    for directory in (folder, home):
        directory.mkdir()
    folders = Folders(
        (str(folder), "<folder>"), (str(home / "data"), "<data>"), (str(home), "<home>")
    )
    steps = tuple(map_texts(step, folders.expand, Step) for step in record.steps)
    for name, text in record.head.files.items():
        _write_file(base, folders.expand(name), folders.expand(text))
    script = Script(Record(head=record.head, steps=steps))
    for name, text in script.instructions.items():
        _write_file(folder, name, text)
    client = ReplayClient(script)
    calls = RecordedCalls(
        script,
        folder,
        client.stop,
        client.steer,
        reversible=record.head.reversible,
        server_tools=record.head.server_tools,
    )
    hooks = ReplayedHooks(
        folder, tuple(map_texts(answer, folders.expand) for answer in record.head.hooks)
    )
    end_background = _background_ends(calls, hooks)
    driver = ReplayDriver(script, client.cancel, client.steer, end_background)
    environ = {HOME_VARIABLE: str(home / "data"), "HOME": str(home), "PATH": ""}
    config = replay_config(record.head, script.start, folder)
    models = ReplayModels(
        config,
        Secrets(find_paths(environ).secrets_file, environ),
        environ,
        models=record.head.models,
        fallbacks=record.head.fallbacks,
        driver=driver,
    )
    sandboxes = RecordedSandboxes(confined=record.head.confined)
    core = _core(config, models, calls, sandboxes, environ, hooks=hooks if hooks.hooks else None)
    GrantStore(find_paths(environ).grants_file).add(
        replace(map_texts(grant, folders.expand), project=str(folder))
        for grant in record.head.grants
    )
    async with client.connected(core):
        await client.open(folder)
        store = (await core.services()).store

        async def act(actions: Sequence[Action]) -> None:
            for action in actions:
                match action:
                    case BackgroundCommandChanged() | HookAnswered():
                        await end_background(action)
                    case ConfigChanged():
                        await client.set_option(action)
                    case Rewound():
                        await _rewind(core, store, client.session, script, action)
                    case Reopened():
                        await client.reopen(folder)
                    case SessionForked():
                        driver.continue_in(await client.fork(folder))

        for number, prompt in enumerate(script.prompts, 1):
            driver.turn = number
            await act(prompt.actions)
            for name, text in prompt.files.items():
                _write_file(folder, name, text)
            try:
                await client.say(prompt)
            except TimeoutError:
                _log.warning("turn %d of the replay does not end", number)
                break
        else:
            await act(script.last_actions)
        stored = recovered_events(await store.read_all(client.session))
    normal = Normaliser(lambda text: scrub(folders.hide(text)))
    events = normal.events(stored)
    requests = tuple(
        (observed, normal.messages(observed.request.messages)) for observed in driver.observed
    )
    differences = [
        *_compare_requests(record, requests),
        *compare_events(arrange([step.event for step in record.steps]), events),
    ]
    differences.sort(
        key=lambda difference: (difference.turn, not difference.request, difference.request)
    )
    return Replayed(
        events=tuple(events),
        requests=requests,
        turns=len(script.prompts),
        differences=tuple(differences),
    )


def _background_ends(
    calls: RecordedCalls, hooks: ReplayedHooks
) -> Callable[[End], Awaitable[None]]:
    """Return what ends a background command, or has a hook in the background answer."""

    async def end_background(end: End) -> None:
        if isinstance(end, HookAnswered):
            await hooks.give_later()
        else:
            await calls.end_background(end)

    return end_background


async def _rewind(
    core: Core, store: Store, session: SessionId, script: Script, rewound: Rewound
) -> None:
    """Rewind the conversation as the user did between two turns."""
    events = recovered_events(await store.read_all(session))
    messages = [
        event.message for event in events if isinstance(event, UserMessage) and not event.steering
    ]
    rewinds = [event.rewind for event in events if isinstance(event, Rewound)]
    opened = await (await core.manager()).find_open(session)
    assert opened is not None
    for recorded, replayed in ((script.turn_messages, messages), (script.rewinds, rewinds)):
        if rewound.to in recorded[: len(replayed)]:
            with suppress(AcpAgentError):  # a failure is a difference
                await opened.rewind(replayed[recorded.index(rewound.to)], "conversation")


def _write_file(base: Path, name: str, text: str) -> None:
    path = Path(name)
    if not path.is_absolute() or not path.resolve().is_relative_to(base):
        _log.info("a file of the record is outside of its folders: %s", name)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _core(
    config: Config,
    models: ReplayModels,
    calls: RecordedCalls,
    sandboxes: RecordedSandboxes,
    environ: Mapping[str, str],
    *,
    hooks: ReplayedHooks | None,
) -> Core:
    """Return the server's core, with some services replaced for the replay."""
    paths = find_paths(environ)
    secrets = Secrets(paths.secrets_file, environ)
    trust = TrustStore(paths.trust_file, config.trusted_folders)

    @cache
    def gate() -> Gate:
        from acp_agent.permissions.opening import open_permissions  # noqa: PLC0415 - only when it runs

        permissions = open_permissions(paths, config, environ, home=environ["HOME"], trust=trust)
        permissions.gate.repositories = PlainRepositories
        return permissions.gate

    def adapt(services: Services) -> Services:
        return replace(
            services,
            config=config,
            models=models,
            account=Account(models, secrets, None, lambda: config),
            gate=gate,
            trust=lambda: trust,
            repositories=PlainRepositories,
            adapt_tools=calls.adapt,
            sandboxes=sandboxes,
            recorded_hooks=hooks,
        )

    return Core(paths, secrets=secrets, environ=environ, model_flag=None, adapt=adapt)


def replay_config(head: Head, start: Mapping[str, str], folder: Path) -> Config:
    """Return the configuration of a replay: the recorded settings, without programs.

    Args:
        start: the mode and the model at the beginning of the session.
        folder: the session's folder, which is trusted: the record has no untrusted files.

    Raises:
        InvalidInputError: the record's settings are invalid.
    """
    unknown = head.settings.keys() - set(SETTINGS)
    if unknown:
        raise InvalidInputError(f"the record has settings that are not allowed: {sorted(unknown)}")
    try:
        config = convert({**head.settings, **start}, Config)
    except msgspec.ValidationError as error:
        raise InvalidInputError(f"the record's settings are wrong: {error}") from None
    language = "zh" if head.language.startswith("zh") else "en"
    return replace(
        config,
        language=language,
        titles="prompt",
        trusted_folders=[str(folder)],
        checkpoints=CheckpointsConfig(enabled=False),
        use_language_servers=False,
        memory=head.memory or any(tool.name == "memory" for tool in head.tools),
    )


def _compare_requests(
    record: Record, requests: Sequence[tuple[Observed, tuple[Message, ...]]]
) -> list[Difference]:
    """Return the differences of each request; an equal difference of a tool only once."""
    differences: list[Difference] = []
    previous: dict[str, tuple[Message, ...]] = {}
    recorded_tools = {tool.name: tool for tool in record.head.tools}
    compared: set[str] = set()
    for observed, messages in requests:
        answer = observed.answer
        if answer is None:
            continue  # its event differs
        recorded = next(
            step.request
            for index, step in enumerate(s for s in record.steps if s.request is not None)
            if index == answer.number - 1
        )
        assert recorded is not None
        expected = (*previous.get(observed.session, ())[: recorded.kept], *recorded.messages)
        previous[observed.session] = expected
        position = {"turn": answer.turn, "request": answer.number}
        differences += compare_values(
            answer.event.model, observed.request.model.ref, field="model", **position
        )
        if len(messages) != len(expected):
            new = messages[recorded.kept :]
            differences += compare_values(recorded.messages, new, field="messages", **position)
        else:  # earlier messages were compared with the previous request
            for index in range(recorded.kept, len(expected)):
                field = f"messages[{index}]"
                differences += compare_values(
                    expected[index], messages[index], field=field, **position
                )
        if recorded.tools is not None:
            differences += compare_values(
                recorded.thought_level,
                observed.request.thought_level,
                field="thought_level",
                **position,
            )
            differences += compare_values(
                recorded.web_search, observed.request.web_search, field="web_search", **position
            )
            offered: dict[str, ToolSpec] = {tool.name: tool for tool in observed.request.tools}
            differences += compare_values(recorded.tools, tuple(offered), field="tools", **position)
            for name in [
                tool_name
                for tool_name in recorded.tools
                if tool_name in recorded_tools and tool_name in offered
            ]:
                if name not in compared:
                    compared.add(name)
                    differences += compare_values(
                        recorded_tools[name], offered[name], field=f"tools.{name}", **position
                    )
        if len(differences) > _MAX_DIFFERENCES:
            break
    return differences


class _NoBackend:
    """A `Backend` that confines nothing, since nothing runs."""

    name = ""
    has_network = True
    notice = ""

    for_helpers = None

    def temporary(self, policy: SandboxPolicy) -> str:
        del policy
        return TEMPORARY

    def launch(self, program: SandboxedProgram) -> Launch:
        raise NotImplementedError


class RecordedSandboxes(SharedSandboxes):
    """Reports a sandbox if the record had one; it cannot run anything."""

    def __init__(self, *, confined: bool) -> None:
        super().__init__()
        self._confined = confined

    def notice(self) -> str:
        """Return "": the record contains the notice."""
        return ""

    def make(self, policy: SandboxPolicy, search_path: str | None) -> Sandbox | Unavailable:
        """Return a sandbox that cannot run anything, or `Unavailable`."""
        del search_path
        if not self._confined:
            return Unavailable("the recorded machine had no sandbox", "")
        return Sandbox(_NoBackend(), policy)


class PlainRepositories(GitRepositories):
    """Reports that no repository makes git run another program, without running git."""

    def used_in(self, folder: str) -> tuple[Repository, ...]:
        """Return no repositories; see `GitRepositories.used_in`."""
        del folder
        return ()
