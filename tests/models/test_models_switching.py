"""Switching models in mid-session: every API takes a history that any other made.

The histories are made for real: scripted answers are read by the one driver, become the events of a
journal and the messages of a context, and are sent by the other driver to a server that checks
them by the rules of its API (tests/models/model_rules.py).
"""

import itertools
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from acp_agent.agent.context import Context
from acp_agent.content import ImageBlock, TextBlock
from acp_agent.events import (
    AgentText,
    AgentThought,
    Event,
    ModelAnswered,
    ModelAsked,
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import new_call_id, new_message_id, new_turn_id
from acp_agent.models.base import (
    CallDone,
    Driver,
    Message,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
)
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.providers import Dialect
from tests.models.model_rules import violations
from tests.support.model_asking import driver_for, openai_provider
from tests.support.model_server import (
    Answer,
    Call,
    Cut,
    ModelServer,
    Redacted,
    Thought,
    answer,
)

# `deepseek` is chat completions with the rules of DeepSeek's and Kimi's reasoning.
APIS = ("anthropic", "openai", "deepseek", "openai_responses", "gemini")
PICTURE = ImageBlock(data="aGk=", mime_type="image/png")
CONTROLS = {
    "anthropic": "adaptive", "openai": "effort", "deepseek": "toggle",
    "openai_responses": "effort", "gemini": "thinking_level",
}  # fmt: skip


def info(api: str, model: str = "model-a") -> ModelInfo:
    return ModelInfo(
        provider="openai" if api.startswith("openai") else api,
        id=model,
        vision=True,
        reasoning=CONTROLS[api],  # type: ignore[arg-type] # one of its words
        thought_levels=("low", "high"),
        default_thought="high",
    )


def signed(api: str) -> str:
    """How every signature begins that an API makes in these tests."""
    return f"made-by-{api}:"


def script(api: str) -> list[Answer]:
    """A session's answers: parallel calls, a sequel with a call, text, a cut-off answer."""
    own = signed(api)
    return [
        answer(
            Thought("Let me look.", own + "1"),
            "I read both.",
            Call("read", {"path": "a.py"}),
            Call("read", {"path": "b.py"}),
        ),
        answer(Redacted(own + "2"), Call("draw", {"what": "it"})),
        answer(Thought("Now I know.", own + "3"), "It is ", "green."),
        answer(Thought("Hm.", own + "4"), "I beg", Cut()),
    ]


def driver_of(api: str, server: ModelServer) -> Driver:
    if api != "deepseek":
        return driver_for(api, server)
    dialect = Dialect(thoughts_back="reasoning_content")
    return OpenAIDriver(openai_provider(server, id="deepseek", dialect=dialect))


class Conversation:
    """A session's events, made as the agent makes them, and the context of them."""

    def __init__(self) -> None:
        self.context = Context()

    def add(self, *events: Event) -> None:
        self.context.feed(events)

    def say(self, *content: Any) -> None:
        self.turn = new_turn_id()
        self.add(TurnStarted(turn=self.turn))
        self.add(UserMessage(message=new_message_id(), content=content))

    def request(self, model: ModelInfo) -> ModelRequest:
        messages: Sequence[Message] = tuple(self.context.messages)
        return ModelRequest(model=model, system="Be brief.", messages=messages, session="s1")

    async def ask(self, driver: Driver, model: ModelInfo) -> None:
        message = new_message_id()
        self.add(ModelAsked(message=message, model=model.ref))
        batches = [batch async for batch in driver.stream(self.request(model))]
        calls = []
        for event in itertools.chain.from_iterable(batches):
            match event:
                case TextDelta(text):
                    self.add(AgentText(message=message, text=text))
                case ThoughtDelta(text):
                    self.add(AgentThought(message=message, text=text))
                case ThoughtDone(provider_data):
                    # The journal keeps it as JSON.
                    kept = json.loads(json.dumps(provider_data))
                    self.add(
                        ThoughtEnded(message=message, provider=model.provider, provider_data=kept)
                    )
                case CallDone():
                    calls.append(event)
        ids = [new_call_id() for _ in calls]
        for id_, call in zip(ids, calls, strict=True):
            self.add(
                ToolCalled(
                    call=id_, message=message, name=call.name, arguments=call.arguments,
                    title="", provider_data=json.loads(json.dumps(call.provider_data)),
                )
            )  # fmt: skip
        self.add(ModelAnswered(message=message, model=model.ref))
        for id_, call in zip(ids, calls, strict=True):
            images = (PICTURE,) if call.name == "draw" else ()
            self.add(ToolEnded(call=id_, result="done", images=images))


async def history(api: str, server: ModelServer, model: ModelInfo) -> Conversation:
    """A conversation that one API made, up to the user's next words."""
    talk = Conversation()
    driver = driver_of(api, server)
    server.add(*script(api))
    talk.say(TextBlock(text="Look at this"), PICTURE)
    for _ in range(3):
        await talk.ask(driver, model)
    talk.add(TurnEnded(turn=talk.turn, stop_reason="end_turn"))
    talk.say(TextBlock(text="And now?"))
    await talk.ask(driver, model)
    talk.add(TurnInterrupted(turn=talk.turn, message=new_message_id()))
    talk.say(TextBlock(text="Go on."))
    await driver.aclose()
    return talk


@pytest.mark.parametrize(("before", "after"), list(itertools.product(APIS, APIS)))
async def test_an_api_takes_the_history_that_another_made(
    server: ModelServer, before: str, after: str
) -> None:
    talk = await history(before, server, info(before))
    for made in server.requests:
        assert violations(before, made.json, own=signed(before)) == []
    driver = driver_of(after, server)
    mine = f"made-by-{after}-itself:"
    call = Call("read", {"path": "c.py"})
    server.add(answer(Thought("I see.", mine + "1"), "Yes.", call), answer("Done."))
    other = info(after, "model-b")
    await talk.ask(driver, other)
    await talk.ask(driver, other)
    await driver.aclose()
    for asked in server.requests[-2:]:
        # The other model's signatures are nobody else's, even where the API is the same.
        assert violations(after, asked.json, own=mine) == []
        sent = asked.body.decode()
        assert signed(before) not in sent
        for words in ("Look at this", "I read both.", "It is green.", "I beg", "Go on."):
            assert words in sent
        assert sent.count("aGk=") == 2  # the user's picture and the tool's


@pytest.mark.parametrize(
    ("api", "control"), [*CONTROLS.items(), ("anthropic", "budget"), ("gemini", "thinking_budget")]
)
async def test_an_api_accepts_a_call_that_the_agent_made(
    server: ModelServer, api: str, control: str
) -> None:
    talk = await history(api, server, info(api))
    message, call = new_message_id(), new_call_id()
    talk.add(
        ModelAsked(message=message, model="openai/model-a"),
        ToolCalled(call=call, message=message, name="skill", arguments="{}", title=""),
        ModelAnswered(message=message, model="openai/model-a"),
        ToolEnded(call=call, result="Two faults."),
    )
    model = msgspec.structs.replace(info(api), reasoning=control)
    driver = driver_of(api, server)
    thought = () if control == "budget" else (Thought("Hm.", signed(api) + "5"),)
    server.add(answer(*thought, Call("read", {"path": "c.py"})), answer("Done."))
    for _ in range(2):
        await talk.ask(driver, model)
    talk.add(TurnEnded(turn=talk.turn, stop_reason="end_turn"))
    talk.say(TextBlock(text="Once more."))
    server.add(answer("Done."))
    await talk.ask(driver, model)
    await driver.aclose()
    *own, after = server.requests[-3:]
    for asked in (*own, after):
        assert violations(api, asked.json, own=signed(api)) == []
    if control == "budget":
        kinds = [asked.json["thinking"]["type"] for asked in (*own, after)]
        assert kinds == ["disabled", "disabled", "enabled"], "the next turn thinks again"


@pytest.mark.parametrize("api", APIS)
async def test_reasoning_goes_back_to_the_model_that_did_it(server: ModelServer, api: str) -> None:
    talk = await history(api, server, info(api))
    driver = driver_of(api, server)
    server.add(answer("Yes."))
    await talk.ask(driver, info(api))
    await driver.aclose()
    sent = server.requests[-1]
    assert violations(api, sent.json, own=signed(api)) == []
    if api in {"openai", "deepseek"}:  # what chat completions signs is nothing
        thoughts = [
            m["reasoning_content"] for m in sent.json["messages"] if "reasoning_content" in m
        ]
        assert thoughts == ([] if api == "openai" else ["Let me look.", " ", "Now I know.", "Hm."])
        return
    for mark in "123":
        assert signed(api) + mark in sent.body.decode()


@pytest.mark.parametrize(("api", "through"), list(itertools.permutations(APIS, 2)))
async def test_reasoning_survives_a_while_with_another_model(
    server: ModelServer, api: str, through: str
) -> None:
    talk = await history(api, server, info(api))
    for name in (through, api):
        driver = driver_of(name, server)
        server.add(answer(Thought("I?", signed(name) + "5"), "Yes."))
        await talk.ask(driver, info(name))
        talk.add(TurnEnded(turn=talk.turn, stop_reason="end_turn"))
        talk.say(TextBlock(text="Once more."))
        await driver.aclose()
    sent = server.requests[-1]
    assert violations(api, sent.json, own=signed(api)) == []
    if api not in {"openai", "deepseek"}:
        assert signed(api) + "1" in sent.body.decode()


@pytest.mark.parametrize("api", APIS)
async def test_the_sent_history_never_changes_while_it_grows(server: ModelServer, api: str) -> None:
    await history(api, server, info(api))
    name = {"openai_responses": "input", "gemini": "contents"}.get(api, "messages")
    lists = [request.json[name] for request in server.requests]
    for earlier, later in itertools.pairwise(lists):
        # Two things that the user's side says in a row are one message: that grows at its end.
        assert later[: len(earlier)] == earlier
    bodies = [request.body for request in server.requests]
    for first, second in itertools.pairwise(bodies):
        assert second.startswith(first.rstrip(b"]}"))
