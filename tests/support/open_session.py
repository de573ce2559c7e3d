"""A session with everything real behind it, in the test's own process, and an editor that records.

desk = await Desk.open(tmp_path, model_server)
model_server.add(answer(Call("read", {"path": "a.py"})), answer("Done."))
assert await desk.say("Look at a.py") == "end_turn"
desk.editor.of(ToolEnded)      # what the editor was shown
await desk.journal()           # what is in the store
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from acp_agent.agent.resources import PermissionRequest
from acp_agent.config.paths import Paths, find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.content import ContentBlock, JsonObject, TextBlock
from acp_agent.elicitation import Form, Page, Response
from acp_agent.errors import StoreError
from acp_agent.events import AnyEvent, StopReason
from acp_agent.ids import CallId, SessionId
from acp_agent.permissions.access import Ask, Decision
from acp_agent.server.core import assemble, dismantle
from acp_agent.session.commands.command import Command
from acp_agent.session.manager import SessionManager
from acp_agent.session.services import Services
from acp_agent.session.session import Session
from acp_agent.session.store.records import UnknownEvent
from acp_agent.session.store.store import Store
from acp_agent.session.turns.turn import Turn
from acp_agent.tools.base import Answer, Question
from acp_agent.workspace.editor_files import EditorBuffers
from acp_agent.workspace.processes import EditorTerminals
from tests.support.model_server import ModelServer

MODEL = "openai/gpt-5"
SECRET = "open-sesame-0123456789-open"  # begins and ends alike

CONFIG = """
[models."openai/gpt-5"]
context_window = 100_000
vision = true
thought_levels = ["low", "high"]
price = { input = 1.0, output = 10.0 }

[models."openai/blind"]
context_window = 50_000
vision = false
thought_levels = []
"""

EventT = TypeVar("EventT")
Decide = Callable[[PermissionRequest, Ask], Awaitable[str | None]]


class RecordingEditor:
    """An editor that keeps what it is shown.

    `decide` presses a button: it gives a choice's kind, or None to dismiss the question. `answer`
    is what the user answers to a question, `filled` what they do with any other form; None: no
    forms.
    """

    def __init__(self) -> None:
        self.shown: list[AnyEvent] = []
        self.asked: list[PermissionRequest] = []
        self.questions: list[Question] = []
        self.decide: Decide = _allow
        self.answer: Answer | None = None
        self.filled: Response | None = None
        self.forms: list[Form] = []
        self.files: EditorBuffers | None = None
        self.commands: Sequence[Command] = ()
        self._news = asyncio.Condition()

    def of(self, kind: type[EventT]) -> list[EventT]:
        """The events of one type, in the order in which they were shown."""
        return [event for event in self.shown if isinstance(event, kind)]

    async def until(self, kind: type[EventT], count: int = 1, *, within: float = 60.0) -> EventT:
        """Wait until so many events of a type were shown; gives the last of them."""
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    async def until_asked(self, count: int = 1, *, within: float = 60.0) -> None:
        """Wait until the user was asked about so many calls."""
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: len(self.asked) >= count)

    @property
    def asks_outside_turns(self) -> bool:
        return self.filled is not None

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        return self.files

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        return None

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        async with self._news:
            self.shown.extend(events)
            self._news.notify_all()

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        self.commands = tuple(commands)

    def options_changed(self, session: SessionId) -> None:
        pass

    async def ask_permission(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> Decision:
        async with self._news:
            self.asked.append(asking)
            self._news.notify_all()
        kind = await self.decide(asking, ask)
        choice = next((choice for choice in ask.choices if choice.kind == kind), None)
        return Decision(choice=choice)

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        self.questions.append(question)
        return self.answer

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        self.forms.append(form)
        return self.filled

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        return None

    def trace(self, session: SessionId) -> JsonObject:
        return {}

    def page_done(self, page: Page) -> None:
        pass

    def replaced(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        pass


def presses(kind: str | None) -> Decide:
    """A user who always presses the button of this kind; None dismisses the question."""

    async def decide(asking: PermissionRequest, ask: Ask) -> str | None:
        return kind

    return decide


_allow = presses("allow_once")


async def never_answers(asking: PermissionRequest, ask: Ask) -> str | None:
    """A user who is away."""
    await asyncio.Event().wait()
    return None


class FaultyStore(Store):
    """A store whose disk is full while `full` says so, and which can be held up."""

    full: bool | Callable[[Sequence[object]], bool] = False
    held: asyncio.Event | None = None

    async def append(
        self, session_id: SessionId, events: Sequence[AnyEvent | UnknownEvent]
    ) -> None:
        if self.held is not None:
            await self.held.wait()
        if self.full(events) if callable(self.full) else self.full:
            raise StoreError("the disk is full; make room on it")
        await super().append(session_id, events)


class Desk:
    """Services, a manager, an editor, and one session of it. Use it with `async with`."""

    def __init__(self, services: Services, server: ModelServer, folder: Path) -> None:
        self.services = services
        self.server = server
        self.folder = folder
        self.editor = RecordingEditor()
        self.manager = SessionManager(services)
        self._session: Session | None = None

    @classmethod
    async def open(
        cls,
        tmp_path: Path,
        server: ModelServer,
        *,
        config: str = "",
        environ: Mapping[str, str] | None = None,
        flag: str | None = MODEL,
        session: bool = True,
        trusted: bool = True,
    ) -> Self:
        """Put everything together below `tmp_path`, with `config` after the models' own.

        What is below `tmp_path` is trusted, unless `trusted` is false.
        """
        paths = home_paths(tmp_path)
        folders = f'trusted_folders = ["{tmp_path}"]\n' if trusted else ""
        paths.config_file.write_text(folders + config + CONFIG)
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        variables = server.environ() | {
            "PATH": "/usr/bin:/bin",
            "HOME": str(paths.data_dir),
            "OPENAI_API_KEY": SECRET,
            "ACP_AGENT_SANDBOX": "false",
            **(environ or {}),
        }
        services = await assemble(
            paths,
            secrets=Secrets(paths.secrets_file, variables),
            environ=variables,
            model_flag=flag,
        )
        path = services.store.path
        await services.store.close()
        services = msgspec.structs.replace(services, store=await FaultyStore.open(path))
        desk = cls(services, server, folder)
        if session:
            desk._session = await desk.manager.create(str(folder), [], desk.editor)
        return desk

    @property
    def store(self) -> FaultyStore:
        """The store, to break it."""
        store = self.services.store
        assert isinstance(store, FaultyStore)
        return store

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    async def reopen(self) -> None:
        """Close the session and open it again."""
        await self.manager.close(self.session.id, self.editor)
        self._session = await self.manager.open(self.session.id, str(self.folder), [])
        self.session.attach(self.editor)

    async def aclose(self) -> None:
        await self.manager.close_all()
        await dismantle(self.services)

    async def begin(self, text: str) -> Turn:
        """Say something; gives the turn that it is part of."""
        said = await self.session.prompts.submit((TextBlock(text=text),), cancelled=lambda: False)
        return said.turn

    async def say(self, *content: ContentBlock | str) -> StopReason:
        """Say something and wait for the end of the turn."""
        blocks = tuple(TextBlock(text=one) if isinstance(one, str) else one for one in content)
        said = await self.session.prompts.submit(blocks, cancelled=lambda: False)
        async with asyncio.timeout(60):
            return await said.turn.result()

    async def cancel(self, turn: Turn) -> StopReason:
        """Stop a turn and wait for its end."""
        turn.cancel()
        async with asyncio.timeout(60):
            return await turn.result()

    async def journal(self) -> list[AnyEvent]:
        """Every event of the session in the store."""
        stored = await self.services.store.read_all(self.session.id)
        return [item.event for item in stored]  # type: ignore[misc]  # none is unknown

    def sent(self, request: int = -1) -> list[dict[str, Any]]:
        """The messages of a request to the model, without the system prompt."""
        messages: list[dict[str, Any]] = self.server.requests[request].json["messages"]
        return [message for message in messages if message["role"] not in {"system", "developer"}]

    def results(self, request: int = -1) -> list[str]:
        """The results of calls in a request to the model, in order."""
        return [
            _text(message["content"]) for message in self.sent(request) if message["role"] == "tool"
        ]

    def words(self, request: int = -1) -> list[str]:
        """What the user's side said in a request to the model, one text a message."""
        return [
            _text(message["content"]) for message in self.sent(request) if message["role"] == "user"
        ]


@contextlib.asynccontextmanager
async def open_desk(tmp_path: Path, server: ModelServer, **options: Any) -> AsyncIterator[Desk]:
    """A desk that is closed in the end."""
    desk = await Desk.open(tmp_path, server, **options)
    try:
        yield desk
    finally:
        await desk.aclose()


def home_paths(tmp_path: Path) -> Paths:
    """The program's files below `tmp_path`."""
    home = tmp_path / "acp-home"
    home.mkdir(exist_ok=True)
    return find_paths({"ACP_AGENT_HOME": str(home)})


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", f"<{part['type']}>") for part in content)


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # a system without /proc, or it ended in between
        return Path("/proc/self").exists() is False
    return state != "Z"
