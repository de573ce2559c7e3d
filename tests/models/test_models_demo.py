"""The demo model: deterministic, offline, honest about what it is."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from acp_agent.ids import CallId
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    CallDelta,
    CallDone,
    Finished,
    Message,
    ModelInfo,
    ModelRequest,
    ModelSide,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolResult,
    ToolSpec,
    UserSide,
    UserText,
)
from acp_agent.models.demo.driver import DemoDriver

DEMO_MODEL = ModelInfo(provider="demo", id="demo")

TOOLS = tuple(
    ToolSpec(name=name, description="", parameters={"type": "object"})
    for name in (
        "read", "write", "edit", "glob", "grep", "list", "shell", "todo", "web_fetch", "ask_user",
    )
)  # fmt: skip


class Conversation:
    """Plays the turn's part: feeds results back until the model is done."""

    def __init__(self, *, tools: Sequence[ToolSpec] = TOOLS) -> None:
        self.tools = tools
        self.messages: list[Message] = []
        self.batches: list[Sequence[StreamEvent]] = []
        self.finished: list[Finished] = []
        self._calls = 0

    def request(self) -> ModelRequest:
        return ModelRequest(
            model=DEMO_MODEL, system="You are helpful.", messages=self.messages, tools=self.tools
        )

    async def step(self) -> tuple[str, list[tuple[str, dict[str, object]]]]:
        events: list[StreamEvent] = []
        async for batch in DemoDriver().stream(self.request()):
            self.batches.append(batch)
            events.extend(batch)
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        calls = [event for event in events if isinstance(event, CallDone)]
        last = events[-1]
        assert isinstance(last, Finished)
        assert last.stop == ("tool_calls" if calls else "end_turn")
        self.finished.append(last)
        parts: list[AnswerText | AnswerCall] = [AnswerText(text)]
        for call in calls:
            self._calls += 1
            parts.append(
                AnswerCall(call=CallId(f"c{self._calls}"), name=call.name, arguments=call.arguments)
            )
        self.messages.append(ModelSide(tuple(parts)))
        return text, [(call.name, json.loads(call.arguments)) for call in calls]

    def say(self, text: str) -> None:
        self.messages.append(UserSide((UserText(text),)))

    def give(self, *texts: str, failed: bool = False) -> None:
        last = self.messages[-1]
        assert isinstance(last, ModelSide)
        calls = [part for part in last.parts if isinstance(part, AnswerCall)]
        assert len(calls) == len(texts)
        self.messages.append(
            UserSide(
                tuple(
                    ToolResult(call=call.call, text=text, failed=failed)
                    for call, text in zip(calls, texts, strict=True)
                )
            )
        )


async def only_calls(words: str) -> list[tuple[str, dict[str, object]]]:
    conversation = Conversation()
    conversation.say(words)
    return (await conversation.step())[1]


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        ("read a.py", [("read", {"path": "a.py"})]),
        ("Please read `src/a b.py`", [("read", {"path": "src/a b.py"})]),
        ("read a.py and b.py", [("read", {"path": "a.py"}), ("read", {"path": "b.py"})]),
        ("read the file a.py", [("read", {"path": "a.py"})]),
        ("list", [("list", {})]),
        ("list all files", [("list", {})]),
        ("list the files in src", [("list", {"path": "src"})]),
        ("list src", [("list", {"path": "src"})]),
        ("search for TODO", [("grep", {"pattern": "TODO"})]),
        ("search for 'def f' in src", [("grep", {"pattern": "def f", "path": "src"})]),
        ("find *.py", [("glob", {"pattern": "**/*.py"})]),
        ("run git status", [("shell", {"command": "git status"})]),
        ("$ echo 'a  b' | wc", [("shell", {"command": "echo 'a  b' | wc"})]),
        ("create n.txt with hello", [("write", {"path": "n.txt", "content": "hello\n"})]),
        (
            "write a file hello.txt with the text hi",
            [("write", {"path": "hello.txt", "content": "hi\n"})],
        ),
        (
            "create a new file called b.txt with the end",
            [("write", {"path": "b.txt", "content": "the end\n"})],
        ),
        ("fetch https://example.com", [("web_fetch", {"url": "https://example.com"})]),
        ("ask Which colour?", [("ask_user", {"question": "Which colour?"})]),
        (
            "ask Red? yes, no or maybe",
            [
                (
                    "ask_user",
                    {
                        "question": "Red?",
                        "options": [{"label": "yes"}, {"label": "no"}, {"label": "maybe"}],
                    },
                )
            ],
        ),
    ],
)
async def test_a_plain_request_becomes_the_matching_call(
    words: str, calls: list[tuple[str, dict[str, object]]]
) -> None:
    assert await only_calls(words) == calls


async def test_a_replacement_reads_the_file_before_it_edits_it() -> None:
    conversation = Conversation()
    conversation.say("replace 'old words' with new in src/a.py")
    assert (await conversation.step())[1] == [("read", {"path": "src/a.py"})]
    conversation.give("1\told words")
    assert (await conversation.step())[1] == [
        ("edit", {"path": "src/a.py", "old": "old words", "new": "new"})
    ]
    conversation.give("edited")
    text, calls = await conversation.step()
    assert calls == []
    assert "edited" in text


async def test_a_failed_call_is_explained_and_ends_the_script() -> None:
    conversation = Conversation()
    conversation.say("replace a with b in gone.py")
    await conversation.step()
    conversation.give("gone.py does not exist.\nLook with list.", failed=True)
    text, calls = await conversation.step()
    assert calls == []
    assert text == "`read` did not work: gone.py does not exist."


async def test_an_unknown_request_is_answered_with_examples() -> None:
    conversation = Conversation()
    conversation.say("Write me a compiler, in Rust.")
    text, calls = await conversation.step()
    assert calls == []
    assert "demo model" in text
    assert "no language model" in text
    assert "acp-agent login" in text


async def test_a_tool_that_the_session_lacks_is_never_called() -> None:
    conversation = Conversation(tools=TOOLS[:1])
    conversation.say("run ls")
    text, calls = await conversation.step()
    assert calls == []
    assert "`shell`" in text


async def test_the_same_conversation_gets_the_same_bytes() -> None:
    first, second = Conversation(), Conversation()
    for conversation in (first, second):
        conversation.say("tour")
        await conversation.step()
    assert first.batches == second.batches


@pytest.mark.parametrize("words", ["think about a b", "count to 30", "tour", "hello  there\n"])
async def test_text_comes_word_by_word_and_joins_to_the_whole(words: str) -> None:
    conversation = Conversation()
    conversation.say(words)
    text, _ = await conversation.step()
    deltas = [e for batch in conversation.batches for e in batch if isinstance(e, TextDelta)]
    assert "".join(delta.text for delta in deltas) == text
    assert len(deltas) == len(text.split(" "))
    assert all(delta.text for delta in deltas)


async def test_call_pieces_join_to_the_whole_arguments() -> None:
    conversation = Conversation()
    conversation.say("read a.py and b.py")
    await conversation.step()
    events = [event for batch in conversation.batches for event in batch]
    for done in (event for event in events if isinstance(event, CallDone)):
        pieces = [e.text for e in events if isinstance(e, CallDelta) and e.index == done.index]
        assert len(pieces) == 2
        assert "".join(pieces) == done.arguments


async def test_thinking_is_streamed_as_reasoning() -> None:
    conversation = Conversation()
    conversation.say("think about tea")
    await conversation.step()
    events = [event for batch in conversation.batches for event in batch]
    thought = "".join(event.text for event in events if isinstance(event, ThoughtDelta))
    assert "tea" in thought


async def test_usage_grows_with_the_size_of_requests() -> None:
    conversation = Conversation()
    conversation.say("read a.py")
    await conversation.step()
    conversation.give("x" * 4_000)
    await conversation.step()
    first, second = (finished.usage for finished in conversation.finished)
    assert second.input - first.input > 1_000
    assert first.output > 0


@pytest.mark.parametrize(
    ("listing", "edited"),
    [("README.md\ngreeting.py\ntest_greeting.py", "greeting.py"), ("main.c", "acp-agent-tour.txt")],
)
async def test_the_tour_plans_reads_edits_runs_a_command_and_sums_up(
    listing: str, edited: str
) -> None:
    conversation = Conversation()
    conversation.say("Show me what you can do with this folder.")
    made: list[tuple[str, dict[str, object]]] = []
    plans: list[list[str]] = []
    for _ in range(20):
        text, calls = await conversation.step()
        if not calls:
            break
        made.extend(calls)
        for name, arguments in calls:
            if name == "todo":
                entries = arguments["todos"]
                assert isinstance(entries, list)
                plans.append([entry["status"] for entry in entries])
        conversation.give(*(listing if name == "list" else "ok" for name, _ in calls))
    else:
        pytest.fail("the tour has no end")
    assert "tour" in text
    assert plans[0] == ["in_progress", *["pending"] * 4]
    assert plans[-1] == ["completed"] * 5
    names = [name for name, _ in made]
    assert names.index("read") < names.index("edit") < names.index("shell")
    assert [a["path"] for name, a in made if name == "edit"] == [edited]
    assert all(a["path"] == edited for name, a in made if name == "write")


async def test_the_tour_ends_when_the_user_refuses() -> None:
    conversation = Conversation()
    conversation.say("tour")
    await conversation.step()
    conversation.give("ok", "test_greeting.py")
    await conversation.step()
    conversation.give("ok", "refused by the user", "fine", failed=True)
    text, calls = await conversation.step()
    assert calls == []
    assert "refused by the user" in text


async def test_a_message_sent_during_the_work_is_answered_next() -> None:
    conversation = Conversation()
    conversation.say("replace a with b in c.py")
    await conversation.step()
    conversation.give("1\ta")
    conversation.say("run pwd")
    assert (await conversation.step())[1] == [("shell", {"command": "pwd"})]


async def test_a_note_of_the_agent_does_not_count_as_a_prompt() -> None:
    conversation = Conversation()
    note = UserText("[The user stopped the previous turn before it was finished.]")
    conversation.messages.append(UserSide((note, UserText("read a.py"))))
    assert (await conversation.step())[1] == [("read", {"path": "a.py"})]
