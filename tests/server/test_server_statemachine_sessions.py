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

from tests.support.editor import Json
from tests.support.known_session import Known, compare, compare_words
from tests.support.session_driver import SessionDriver, Shown, Work
from tests.support.session_world import Question, World
from tests.support.wire_client import AnswerError

SOAK = int(os.environ.get("ACP_AGENT_SOAK", "0"))  # actions; 0: the few of `make test`
SEED = int(os.environ.get("ACP_AGENT_SOAK_SEED", "1"))
STEPS = 30  # actions in a sequence
SAMPLE = 4  # sequences in `make test`

OPEN_AT_ONCE = 4
PICK = integers(0, OPEN_AT_ONCE - 1)


class Action(Struct, frozen=True):
    """Something that a client may do: how often compared to others, when, and with what."""

    name: str
    weight: int
    may: Callable[[Any], Any]
    given: dict[str, SearchStrategy[Any]]


ACTIONS: list[Action] = []
Method = TypeVar("Method", bound=Callable[..., None])


def action(
    weight: int, may: Callable[[Sessions], Any], **given: SearchStrategy[Any]
) -> Callable[[Method], Method]:
    """Make a method of `Sessions` one of the actions."""

    def register(method: Method) -> Method:
        ACTIONS.append(Action(method.__name__, weight, may, given))
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
        legal = [one for one in ACTIONS if one.may(self)]
        names = [one for one in legal for _ in range(one.weight)]
        chosen = data.draw(sampled_from(names).map(lambda one: one.name), label="action")
        given = next(one.given for one in legal if one.name == chosen)
        drawn = {name: data.draw(how, label=name) for name, how in given.items()}
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
        for known in [*self.sessions]:
            if known.working:
                await self._cancel(known, times=1)
            if known.archived:
                await self._archive(known, archived=False)
            await self._open(known, replay=True)
            await self._delete(known)
        await self._list()

    # --- sessions

    @action(3, lambda self: len(self.sessions) < OPEN_AT_ONCE)
    def new(self) -> None:
        name = self.world.do(self.driver.new(self.cwd))
        assert name not in [known.id for known in self.sessions]
        self.sessions.append(Known(name))

    @action(
        2,
        lambda self: self.some(lambda one: not one.working and not one.archived),
        pick=PICK,
        replay=booleans(),
    )
    def open(self, pick: int, replay: bool) -> None:
        known = self.pick(pick, lambda one: not one.working and not one.archived)
        self.world.do(self._open(known, replay=replay))

    @action(2, lambda self: self.some(lambda one: one.open), pick=PICK)
    def close(self, pick: int) -> None:
        known = self.pick(pick, lambda one: one.open)
        self.world.do(self._leave_work(known, self.driver.ask("session/close", sessionId=known.id)))
        known.open = False

    @action(1, lambda self: self.sessions, pick=PICK)
    def delete(self, pick: int) -> None:
        self.world.do(self._delete(self.pick(pick)))

    @action(
        2,
        lambda self: (
            len(self.sessions) < OPEN_AT_ONCE
            and self.driver.supports("fork")
            and self.some(lambda one: one.begun and not one.working and not one.crashed)
        ),
        pick=PICK,
    )
    def fork(self, pick: int) -> None:
        known = self.pick(pick, lambda one: one.begun and not one.working and not one.crashed)
        result = self.world.do(
            self.driver.ask(
                "session/fork",
                sessionId=known.id,
                cwd=str(self.cwd),
                mcpServers=[],
            )
        )
        fork = Known(result["sessionId"], said=[*known.said], unsure={*known.unsure})
        fork.begun, fork.seen = True, False
        self.sessions.append(fork)

    @action(1, lambda self: True)
    def list_all(self) -> None:
        self.world.do(self._list())

    @action(
        1,
        lambda self: self.driver.supports("title") and self.some(lambda one: one.begun),
        pick=PICK,
        title=sampled_from(["Renamed", "Ünïcode ✓"]),
    )
    def set_title(self, pick: int, title: str) -> None:
        known = self.pick(pick, lambda one: one.begun)
        self.world.do(self.driver.ask("session/set_title", sessionId=known.id, title=title))
        known.title = title

    @action(
        1,
        lambda self: self.driver.supports("archive") and self.some(lambda one: one.begun),
        pick=PICK,
        archived=booleans(),
    )
    def archive(self, pick: int, archived: bool) -> None:
        known = self.pick(pick, lambda one: one.begun)
        self.world.do(self._archive(known, archived=archived))

    @action(1, lambda self: self.driver.supports("status") and self.sessions, pick=PICK)
    def status(self, pick: int) -> None:
        known = self.pick(pick)
        result = self.world.do(self.driver.ask("session/status", sessionId=known.id))
        assert result["status"] == ("open" if known.open else "saved")

    @action(
        1,
        lambda self: self.some(lambda one: one.open),
        pick=PICK,
        mode=sampled_from(["ask", "accept-edits"]),
    )
    def set_option(self, pick: int, mode: str) -> None:
        known = self.pick(pick, lambda one: one.open)
        options = self.world.do(self.driver.choose(known.id, "mode", mode))
        values = {one.get("id", one.get("configId")): one["currentValue"] for one in options}
        assert values["mode"] == mode

    @action(2, lambda self: self.left < 2 and self.sessions, kill=booleans())
    def leave_and_come_back(self, kill: bool) -> None:
        self.left += 1
        for known in self.sessions:
            if known.open:
                self._remember(known)
                known.crashed = known.crashed or kill or bool(known.working)
                known.open, known.working, known.works = False, "", []
        self.world.do(self.world.leave(kill=kill))
        self.world.do(self.world.start())

    # --- work

    @action(
        4,
        lambda self: self.some(lambda one: one.open and not one.working),
        pick=PICK,
        conduct=sampled_from(["say", "think", "slow", "read", "fail"]),
    )
    def prompt(self, pick: int, conduct: str) -> None:
        known = self.pick(pick, lambda one: one.open and not one.working)
        work = self.say(known, conduct)
        wanted = "error" if conduct == "fail" else "end_turn"
        assert self.world.do(self.driver.end(work)) == wanted

    @action(
        2,
        lambda self: self.some(lambda one: one.open and not one.working),
        pick=PICK,
        pressed=sampled_from(["allow_once", "reject_once", "cancelled"]),
    )
    def prompt_that_asks(self, pick: int, pressed: str) -> None:
        known = self.pick(pick, lambda one: one.open and not one.working)
        self.world.pressed[known.id] = pressed
        work = self.say(known, "run")
        assert self.world.do(self.driver.end(work)) == "end_turn"
        made = self.cwd / f"out-{self.world.number}.txt"
        assert made.exists() == (pressed == "allow_once")

    @action(
        4,
        lambda self: self.some(lambda one: one.open and not one.working),
        pick=PICK,
        conduct=sampled_from(["stall", "run", "wait"]),
    )
    def begin(self, pick: int, conduct: str) -> None:
        known = self.pick(pick, lambda one: one.open and not one.working)
        self.world.pressed[known.id] = "late" if conduct == "run" else "allow_once"
        self.world.do(self._begin(known, conduct))

    @action(4, lambda self: self.some(lambda one: bool(one.working)), pick=PICK)
    def steer(self, pick: int) -> None:
        known = self.pick(pick, lambda one: bool(one.working))
        work = self.say(known, "say")
        known.works.append(work)
        self.world.do(self.driver.inserted(work))
        if not self.driver.echoes:
            known.unsure.add(known.said[-1])

    @action(
        3,
        lambda self: self.some(self.can_go_on),
        pick=PICK,
        pressed=sampled_from(["allow_once", "reject_once"]),
    )
    def go_on(self, pick: int, pressed: str) -> None:
        known = self.pick(pick, self.can_go_on)
        if known.working == "stall":
            self.world.conduct.release(known.number)
        elif known.working == "run":
            self.world.late[known.id].answered.set_result(pressed)
        else:
            by_terminal = pressed == "reject_once"
            self.world.do(self.driver.stop_command(known.id, by_terminal=by_terminal))
        self.world.do(self._ends(known, "end_turn"))

    @action(
        3, lambda self: self.some(lambda one: bool(one.working)), pick=PICK, times=integers(1, 2)
    )
    def cancel(self, pick: int, times: int) -> None:
        known = self.pick(pick, lambda one: bool(one.working))
        self.world.do(self._cancel(known, times=times))

    @action(1, lambda self: self.some(lambda one: one.open and not one.working), pick=PICK)
    def cancel_when_idle(self, pick: int) -> None:
        self.driver.cancel(self.pick(pick, lambda one: one.open and not one.working).id)

    @action(
        2,
        lambda self: self.some(lambda one: one.open and not one.working),
        pick=PICK,
        request=booleans(),
    )
    def prompt_and_cancel_at_once(self, pick: int, request: bool) -> None:
        known = self.pick(pick, lambda one: one.open and not one.working)
        work = self.say(known, "slow")
        known.unsure.add(known.said[-1])
        if request:
            self.driver.cancel_request(work)
        else:
            self.driver.cancel(known.id)
        reason = self.world.do(self.driver.end(work))
        assert reason in {"cancelled", "end_turn"}
        if reason == "end_turn":
            known.unsure.discard(known.said[-1])

    @action(
        1,
        lambda self: self.driver.version == 1 and self.some(lambda one: bool(one.working)),
        pick=PICK,
    )
    def cancel_the_request(self, pick: int) -> None:
        known = self.pick(pick, lambda one: bool(one.working))
        self.driver.cancel_request(known.works[0])
        self.world.do(self._ends(known, "cancelled"))

    @action(1, lambda self: self.some(lambda one: not one.open), pick=PICK)
    def prompt_what_is_closed(self, pick: int) -> None:
        known = self.pick(pick, lambda one: not one.open)
        work = self.driver.post(known.id, "say #0")
        with pytest.raises(AnswerError, match="not found") as refused:
            self.world.do(self.world.running.result(work.request))
        assert refused.value.code == -32002

    # --- their parts

    @property
    def driver(self) -> SessionDriver:
        return self.world.driver

    def some(self, fits: Callable[[Known], bool]) -> bool:
        return any(fits(one) for one in self.sessions)

    def can_go_on(self, known: Known) -> bool:
        """Whether something can be done so that the work comes to its own end."""
        return known.working in {"stall", "run"} or (
            known.working == "wait" and self.driver.version > 1
        )

    def pick(self, index: int, fits: Callable[[Known], bool] = lambda _: True) -> Known:
        fitting = [one for one in self.sessions if fits(one)]
        return fitting[index % len(fitting)]

    def say(self, known: Known, conduct: str) -> Work:
        self.world.number += 1
        words = f"{conduct} #{self.world.number}"
        known.said.append(words)
        known.begun = True
        return self.driver.post(known.id, words)

    async def _begin(self, known: Known, conduct: str) -> None:
        """Begin work, and wait until it stands still where its conduct lets it stand."""
        question = self.world.late[known.id] = Question()
        known.works = [self.say(known, conduct)]
        known.working, known.number = conduct, self.world.number
        async with asyncio.timeout(15):
            if conduct == "run":
                await question.asked.wait()
                return
            if conduct == "wait":
                await self.driver.printed(known.id, f"Waits for #{known.number}.")
                return
            begun = f"Begun #{known.number}."
            await self.world.conduct.stalled(known.number)
            await self.world.running.expect(lambda message: begun in str(message.get("params")))

    async def _ends(self, known: Known, reason: str) -> None:
        ends = [await self.driver.end(work) for work in known.works]
        assert ends == [reason] * len(ends), ends
        if reason == "end_turn":
            known.unsure -= {*known.said[-len(ends) :]}  # they were heard, then
        known.working, known.works = "", []

    async def _cancel(self, known: Known, *, times: int) -> None:
        for _ in range(times):
            self.driver.cancel(known.id)
        await self._ends(known, "cancelled")

    async def _leave_work(self, known: Known, request: Coroutine[Any, Any, Json]) -> None:
        """Do what stops the work of a session; the work has ended when that is answered."""
        await request
        if known.working:
            await self._ends(known, "cancelled")
        self._remember(known)

    async def _delete(self, known: Known) -> None:
        await self._leave_work(known, self.driver.ask("session/delete", sessionId=known.id))
        self.sessions.remove(known)

    async def _archive(self, known: Known, *, archived: bool) -> None:
        method = "session/archive" if archived else "session/unarchive"
        request = self.driver.ask(method, sessionId=known.id)
        if not archived:
            await request
        else:
            await self._leave_work(known, request)
            known.open = False
        known.archived = archived

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
        maybe = {one.id for one in self.sessions if one.begun}
        assert sure <= set(listed) <= maybe, (sure, set(listed), maybe)
        for known in self.sessions:
            if known.id in listed:
                entry = listed[known.id]
                assert Path(entry["cwd"]) == self.cwd
                assert known.title in {None, entry.get("title")}
                assert entry.get("archived", False) == known.archived

    def _remember(self, known: Known) -> None:
        """Add what was shown since the session was opened to what was shown before."""
        if known.open:
            now = self.driver.shown(known.id)
            known.before.agent |= now.agent
            known.before.calls |= now.calls

    async def _open(self, known: Known, *, replay: bool) -> None:
        self._remember(known)
        await self.driver.open(known.id, self.cwd, replay=replay)
        known.open = True
        if not replay:
            return
        shown = self.driver.shown(known.id)
        compare_words(known, shown.said)
        assert not shown.cut, f"the replay left calls open: {shown.cut}"
        if known.seen:
            compare(known, known.before, shown)
        known.before, known.crashed, known.seen = Shown(), False, True


@pytest.mark.covers("T2", "T6", "T7", "S4", "S5", "S6", "P3", "P7", "P8", "P9")
@pytest.mark.timeout(max(300, SOAK))
@pytest.mark.parametrize("versions", [(1,), (2,), (1, 2)], ids=["v1", "v2", "both"])
def test_whatever_a_client_does_the_agent_keeps_its_word(
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
