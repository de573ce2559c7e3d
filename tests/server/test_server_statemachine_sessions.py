"""Whatever a client does with its sessions, in whatever order, the agent keeps its word.

Random sequences of legal actions go to the real agent: new, load, resume, fork, prompt, steer,
cancel once and twice, set an option or a title, archive, close, delete, list, leave and come back.
The model is slow, stands still, fails, asks for permission; the user answers at once, late, or
never. After every action the oracle has judged every line, and beyond that:

- every prompt ends exactly once, and as its conduct lets it;
- the list has the sessions that it should have;
- a replay shows what was shown live, also where the one was of version 1 and the other of 2;
- nothing hangs: every wait has an end.

`make test` tries a few sequences, always the same. `make soak STEPS=20000` tries about so many
actions for each version, and for a client that changes between them, from SEED on.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import (
    DataObject,
    SearchStrategy,
    booleans,
    data,
    integers,
    sampled_from,
)
from msgspec import Struct

from tests.server.known_session import Known, compare, compare_words
from tests.server.session_driver import SessionDriver, Shown, Work
from tests.server.session_world import Question, World
from tests.support.editor import Json
from tests.support.wire_client import AnswerError

SOAK = int(os.environ.get("ACP_AGENT_SOAK", "0"))  # actions; 0: the few of `make test`
SEED = int(os.environ.get("ACP_AGENT_SOAK_SEED", "1"))
STEPS = 30  # actions in a sequence
SAMPLE = 3  # sequences in `make test`

OPEN_AT_ONCE = 4
PICK = integers(0, OPEN_AT_ONCE - 1)


class Action(Struct, frozen=True):
    """Something that a client may do: how often compared to others, when, and with what."""

    name: str
    weight: int
    may: Callable[[Any], Any]
    strategies: dict[str, SearchStrategy[Any]]


ACTIONS: list[Action] = []
Method = TypeVar("Method", bound=Callable[..., None])


def action(
    weight: int, may: Callable[[Sessions], Any], **strategies: SearchStrategy[Any]
) -> Callable[[Method], Method]:
    """Make a method of `Sessions` one of the actions."""

    def register(method: Method) -> Method:
        ACTIONS.append(Action(method.__name__, weight, may, strategies))
        return method

    return register


class Sessions(RuleBasedStateMachine):
    """One client's sessions."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.cwd = world.folder()
        self.sessions: list[Known] = []
        self.left = 0

    # --- the beginning, the end, and what holds in between

    @initialize()
    def start(self) -> None:
        self.world.do(self.world.begin())

    @rule(data=data())
    def act(self, data: DataObject) -> None:
        """Do one of the things that are legal now; each is as likely as it weighs."""
        legal = [candidate for candidate in ACTIONS if candidate.may(self)]
        names = [candidate for candidate in legal for _ in range(candidate.weight)]
        chosen = data.draw(
            sampled_from(names).map(lambda candidate: candidate.name), label="action"
        )
        strategies = next(candidate.strategies for candidate in legal if candidate.name == chosen)
        drawn = {name: data.draw(how, label=name) for name, how in strategies.items()}
        getattr(self, chosen)(**drawn)

    @invariant()
    def no_rule_is_broken(self) -> None:
        agent = self.world.agent
        if agent is not None:
            if agent.violation is not None:
                raise agent.violation
            if agent.fault is not None:
                raise agent.fault
            assert agent.process.returncode is None, agent.report()

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None:
            self.world.do(self.world.drop())  # the next sequence is to have a sound one
            return
        try:
            self.world.do(self._finish())
            self.no_rule_is_broken()
        except BaseException:
            self.world.do(self.world.drop())
            raise

    async def _finish(self) -> None:
        """Every session, asked for once more, shows what it showed, and then it goes."""
        for session in [*self.sessions]:
            if session.working:
                await self._cancel(session, times=1)
            if session.archived:
                await self._archive(session, archived=False)
            await self._open(session, replay=True)
            await self._delete(session)
        await self._list()

    # --- sessions

    @action(3, lambda self: len(self.sessions) < OPEN_AT_ONCE)
    def new(self) -> None:
        name = self.world.do(self.driver.new(self.cwd))
        assert name not in [session.id for session in self.sessions]
        self.sessions.append(Known(name))

    @action(
        2,
        lambda self: self.some(lambda candidate: not candidate.working and not candidate.archived),
        pick=PICK,
        replay=booleans(),
    )
    def open(self, pick: int, replay: bool) -> None:
        session = self.pick(
            pick, lambda candidate: not candidate.working and not candidate.archived
        )
        self.world.do(self._open(session, replay=replay))

    @action(2, lambda self: self.some(lambda candidate: candidate.open), pick=PICK)
    def close(self, pick: int) -> None:
        session = self.pick(pick, lambda candidate: candidate.open)
        self.world.do(
            self._leave_work(session, self.driver.ask("session/close", sessionId=session.id))
        )
        session.open = False

    @action(1, lambda self: self.sessions, pick=PICK)
    def delete(self, pick: int) -> None:
        self.world.do(self._delete(self.pick(pick)))

    @action(
        2,
        lambda self: (
            len(self.sessions) < OPEN_AT_ONCE
            and self.driver.supports("fork")
            and self.some(
                lambda candidate: (
                    candidate.begun and not candidate.working and not candidate.crashed
                )
            )
        ),
        pick=PICK,
    )
    def fork(self, pick: int) -> None:
        session = self.pick(
            pick,
            lambda candidate: candidate.begun and not candidate.working and not candidate.crashed,
        )
        result = self.world.do(
            self.driver.ask(
                "session/fork",
                sessionId=session.id,
                cwd=str(self.cwd),
                mcpServers=[],
            )
        )
        fork = Known(result["sessionId"], said=[*session.said], unsure={*session.unsure})
        fork.begun, fork.seen = True, False
        self.sessions.append(fork)

    @action(1, lambda self: True)
    def list_all(self) -> None:
        self.world.do(self._list())

    @action(
        1,
        lambda self: self.driver.supports("title") and self.some(lambda candidate: candidate.begun),
        pick=PICK,
        title=sampled_from(["Renamed", "Ünïcode ✓"]),
    )
    def set_title(self, pick: int, title: str) -> None:
        session = self.pick(pick, lambda candidate: candidate.begun)
        self.world.do(self.driver.ask("session/set_title", sessionId=session.id, title=title))
        session.title = title

    @action(
        1,
        lambda self: (
            self.driver.supports("archive") and self.some(lambda candidate: candidate.begun)
        ),
        pick=PICK,
        archived=booleans(),
    )
    def archive(self, pick: int, archived: bool) -> None:
        session = self.pick(pick, lambda candidate: candidate.begun)
        self.world.do(self._archive(session, archived=archived))

    @action(1, lambda self: self.driver.supports("status") and self.sessions, pick=PICK)
    def status(self, pick: int) -> None:
        session = self.pick(pick)
        result = self.world.do(self.driver.ask("session/status", sessionId=session.id))
        assert result["status"] == ("open" if session.open else "saved")

    @action(
        1,
        lambda self: self.some(lambda candidate: candidate.open),
        pick=PICK,
        mode=sampled_from(["ask", "accept-edits"]),
    )
    def set_option(self, pick: int, mode: str) -> None:
        session = self.pick(pick, lambda candidate: candidate.open)
        options = self.world.do(self.driver.choose(session.id, "mode", mode))
        values = {
            candidate.get("id", candidate.get("configId")): candidate["currentValue"]
            for candidate in options
        }
        assert values["mode"] == mode
        session.configured = True

    @action(2, lambda self: self.left < 2 and self.sessions, kill=booleans())
    def leave_and_come_back(self, kill: bool) -> None:
        self.left += 1
        for session in self.sessions:
            if session.open:
                self._remember(session)
                session.crashed = session.crashed or kill or bool(session.working)
                session.open, session.working, session.works = False, "", []
        self.world.do(self.world.leave(kill=kill))
        self.world.do(self.world.start())

    # --- work

    @action(
        4,
        lambda self: self.some(lambda candidate: candidate.open and not candidate.working),
        pick=PICK,
        conduct=sampled_from(["say", "think", "slow", "read", "fail"]),
    )
    def prompt(self, pick: int, conduct: str) -> None:
        session = self.pick(pick, lambda candidate: candidate.open and not candidate.working)
        work = self.say(session, conduct)
        expected_reason = "error" if conduct == "fail" else "end_turn"
        assert self.world.do(self.driver.end(work)) == expected_reason

    @action(
        2,
        lambda self: self.some(lambda candidate: candidate.open and not candidate.working),
        pick=PICK,
        pressed=sampled_from(["allow_once", "reject_once", "cancelled"]),
    )
    def prompt_that_asks(self, pick: int, pressed: str) -> None:
        session = self.pick(pick, lambda candidate: candidate.open and not candidate.working)
        self.world.pressed[session.id] = pressed
        work = self.say(session, "run")
        assert self.world.do(self.driver.end(work)) == "end_turn"
        created = self.cwd / f"out-{self.world.number}.txt"
        assert created.exists() == (pressed == "allow_once")

    @action(
        4,
        lambda self: self.some(lambda candidate: candidate.open and not candidate.working),
        pick=PICK,
        conduct=sampled_from(["stall", "run", "wait"]),
    )
    def start_turn(self, pick: int, conduct: str) -> None:
        session = self.pick(pick, lambda candidate: candidate.open and not candidate.working)
        self.world.pressed[session.id] = "late" if conduct == "run" else "allow_once"
        self.world.do(self._start_turn(session, conduct))

    @action(4, lambda self: self.some(lambda candidate: bool(candidate.working)), pick=PICK)
    def steer(self, pick: int) -> None:
        session = self.pick(pick, lambda candidate: bool(candidate.working))
        work = self.say(session, "say")
        session.works.append(work)
        self.world.do(self.driver.inserted(work))
        if not self.driver.echoes:
            session.unsure.add(session.said[-1])

    @action(
        3,
        lambda self: self.some(self.can_go_on),
        pick=PICK,
        pressed=sampled_from(["allow_once", "reject_once"]),
    )
    def go_on(self, pick: int, pressed: str) -> None:
        session = self.pick(pick, self.can_go_on)
        if session.working == "stall":
            self.world.conduct.release(session.number)
        elif session.working == "run":
            self.world.late[session.id].answered.set_result(pressed)
        else:
            by_terminal = pressed == "reject_once"
            self.world.do(self.driver.stop_command(session.id, by_terminal=by_terminal))
        self.world.do(self._ends(session, "end_turn"))

    @action(
        3,
        lambda self: self.some(lambda candidate: bool(candidate.working)),
        pick=PICK,
        times=integers(1, 2),
    )
    def cancel(self, pick: int, times: int) -> None:
        session = self.pick(pick, lambda candidate: bool(candidate.working))
        self.world.do(self._cancel(session, times=times))

    @action(
        1,
        lambda self: self.some(lambda candidate: candidate.open and not candidate.working),
        pick=PICK,
    )
    def cancel_when_idle(self, pick: int) -> None:
        self.driver.cancel(
            self.pick(pick, lambda candidate: candidate.open and not candidate.working).id
        )

    @action(
        2,
        lambda self: self.some(lambda candidate: candidate.open and not candidate.working),
        pick=PICK,
        request=booleans(),
    )
    def prompt_and_cancel_at_once(self, pick: int, request: bool) -> None:
        session = self.pick(pick, lambda candidate: candidate.open and not candidate.working)
        work = self.say(session, "slow")
        session.unsure.add(session.said[-1])
        if request:
            self.driver.cancel_request(work)
        else:
            self.driver.cancel(session.id)
        reason = self.world.do(self.driver.end(work))
        assert reason in {"cancelled", "end_turn"}
        if reason == "end_turn":
            session.unsure.discard(session.said[-1])

    @action(
        1,
        lambda self: (
            self.driver.version == 1 and self.some(lambda candidate: bool(candidate.working))
        ),
        pick=PICK,
    )
    def cancel_the_request(self, pick: int) -> None:
        session = self.pick(pick, lambda candidate: bool(candidate.working))
        self.driver.cancel_request(session.works[0])
        self.world.do(self._ends(session, "cancelled"))

    @action(1, lambda self: self.some(lambda candidate: not candidate.open), pick=PICK)
    def prompt_what_is_closed(self, pick: int) -> None:
        session = self.pick(pick, lambda candidate: not candidate.open)
        work = self.driver.post(session.id, "say #0")
        with pytest.raises(AnswerError, match="not found") as refused:
            self.world.do(self.world.running.result(work.request))
        assert refused.value.code == -32002

    # --- their parts

    @property
    def driver(self) -> SessionDriver:
        return self.world.driver

    def some(self, fits: Callable[[Known], bool]) -> bool:
        return any(fits(candidate) for candidate in self.sessions)

    def can_go_on(self, session: Known) -> bool:
        """Whether something can be done so that the work comes to its own end."""
        return session.working in {"stall", "run"} or (
            session.working == "wait" and self.driver.version > 1
        )

    def pick(self, index: int, fits: Callable[[Known], bool] = lambda _: True) -> Known:
        fitting = [candidate for candidate in self.sessions if fits(candidate)]
        return fitting[index % len(fitting)]

    def say(self, session: Known, conduct: str) -> Work:
        self.world.number += 1
        words = f"{conduct} #{self.world.number}"
        session.said.append(words)
        session.begun = True
        return self.driver.post(session.id, words)

    async def _start_turn(self, session: Known, conduct: str) -> None:
        """Begin work, and wait until it stands still where its conduct lets it stand."""
        question = self.world.late[session.id] = Question()
        session.works = [self.say(session, conduct)]
        session.working, session.number = conduct, self.world.number
        async with asyncio.timeout(60):
            if conduct == "run":
                await question.asked.wait()
                return
            if conduct == "wait":
                await self.driver.printed(session.id, f"Waits for #{session.number}.")
                return
            first_text = f"Begun #{session.number}."
            await self.world.conduct.stalled(session.number)
            await self.world.running.expect(
                lambda message: first_text in str(message.get("params"))
            )

    async def _ends(self, session: Known, reason: str) -> None:
        ends = [await self.driver.end(work) for work in session.works]
        assert ends == [reason] * len(ends), ends
        if reason == "end_turn":
            session.unsure -= {*session.said[-len(ends) :]}  # they were heard, then
        session.working, session.works = "", []

    async def _cancel(self, session: Known, *, times: int) -> None:
        for _ in range(times):
            self.driver.cancel(session.id)
        await self._ends(session, "cancelled")

    async def _leave_work(self, session: Known, request: Coroutine[Any, Any, Json]) -> None:
        """Do what stops the work of a session; the work has ended when that is answered."""
        await request
        if session.working:
            await self._ends(session, "cancelled")
        self._remember(session)

    async def _delete(self, session: Known) -> None:
        await self._leave_work(session, self.driver.ask("session/delete", sessionId=session.id))
        self.sessions.remove(session)

    async def _archive(self, session: Known, *, archived: bool) -> None:
        method = "session/archive" if archived else "session/unarchive"
        request = self.driver.ask(method, sessionId=session.id)
        if not archived:
            await request
        else:
            await self._leave_work(session, request)
            session.open = False
        session.archived = archived

    async def _list(self) -> None:
        listed: dict[str, Json] = {}
        cursor: Json = {}
        filters = {"cwd": str(self.cwd)}
        if self.driver.supports("archive"):
            filters["archived"] = "include"
        while True:
            page = await self.driver.ask("session/list", **filters, **cursor)
            assert not listed.keys() & {one["sessionId"] for one in page["sessions"]}
            listed |= {one["sessionId"]: one for one in page["sessions"]}
            if page.get("nextCursor") is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        sure = {one.id for one in self.sessions if set(one.said) - one.unsure}
        maybe = {one.id for one in self.sessions if one.begun or one.configured}
        assert sure <= set(listed) <= maybe, (sure, set(listed), maybe)
        for session in self.sessions:
            if session.id in listed:
                entry = listed[session.id]
                assert Path(entry["cwd"]) == self.cwd
                assert session.title in {None, entry.get("title")}
                assert entry.get("archived", False) == session.archived

    def _remember(self, session: Known) -> None:
        """Add what was shown since the session was opened to what was shown before."""
        if session.open:
            now = self.driver.shown(session.id)
            session.before.agent |= now.agent
            session.before.calls |= now.calls

    async def _open(self, session: Known, *, replay: bool) -> None:
        self._remember(session)
        await self.driver.open(session.id, self.cwd, replay=replay)
        session.open = True
        if not replay:
            return
        texts = self.driver.shown(session.id)
        compare_words(session, texts.said)
        assert not texts.cut, f"the replay left calls open: {texts.cut}"
        if session.seen:
            compare(session, session.before, texts)
        session.before, session.crashed, session.seen = Shown(), False, True


@pytest.mark.covers("T2", "T6", "T7", "S4", "S5", "S6", "P3", "P7", "P8", "P9")
@pytest.mark.timeout(max(300, SOAK))
@pytest.mark.parametrize("versions", [(1,), (2,), (1, 2)], ids=["v1", "v2", "both"])
def test_the_agent_keeps_the_protocol_with_every_client(
    versions: tuple[int, ...], home: Path, tmp_path: Path
) -> None:
    world = World(versions, home, tmp_path / "folders")

    @seed(SEED)
    def machine() -> Sessions:
        return Sessions(world)

    how = settings(
        max_examples=max(SOAK // STEPS, 1) if SOAK else SAMPLE,
        stateful_step_count=STEPS,
        derandomize=not SOAK,
        database=None,
        # A few steps are read as they are; many are worth the time that making them fewer takes.
        phases=(Phase.generate, Phase.shrink) if SOAK else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(machine, settings=how)  # type: ignore[arg-type]  # any factory does
    finally:
        world.close()
