"""What a summary must not lose."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from acp_agent.agent.summary_verbatim import (
    VERBATIM_HEADING,
    Verbatim,
    append_missing,
    collect_verbatim,
)
from acp_agent.agent.token_count import text_tokens
from acp_agent.content import DiffPart, TextBlock
from acp_agent.events import (
    AnyEvent,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    ToolCalled,
    ToolEnded,
    ToolShown,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId


def kept(*events: AnyEvent, text: str = "", messages: tuple[str, ...] = ("u",)) -> Verbatim:
    return collect_verbatim(events, messages, [(text, 1.0)])


def said(name: str, text: str, *, local: bool = False) -> UserMessage:
    return UserMessage(message=MessageId(name), content=(TextBlock(text=text),), local=local)


NOTHING = Verbatim(messages=(), todos=(), files=(), names=())


@pytest.mark.parametrize(
    "name",
    [
        "src/net/retry_policy.py",
        "/etc/hosts",
        "../other/file.txt",
        "~/notes.md",
        "src/a.py:118",
        "README.md",
        "https://example.com/a/b?c=1&d=%20x",
        "4f9ad21c",
        "0192f1c4-7d1e-7cc3-98c4-dc0c0c07398f",
        "9b1c0ffee4d5a6b7c8d9e0f1a2b3c4d5e6f70819",
        "max_attempts",
        "MAX_ATTEMPTS",
        "legacyClient",
        "ConnectionPool",
        "T-8812",
        "7.14.2",
        "v1.2.3",
        "2026-11-22",
        "12:30",
        "1,048,576",
        "4711",
        "feature/limit-retries",
        "s3://bucket/key",
        "ssh://git@host.example:22/a",
        "git@host.example:a/b.git",
        "someone@host.example",
        r"C:\Users\me\notes.txt",
        ".env",
        "0xDEADBEEF",
        "9F86D081884C",
        "v2.3.4-rc.1",
        "1.5.0rc2",
        "E0502",
        "HTTPServer",
        "--dry-run",
        "std::vector::begin",
        "größe_max",
    ],
)
def test_a_name_is_seen_in_a_sentence(name: str) -> None:
    for sentence in (f"It is {name} that broke.", f"See ({name}), please.", f"用 `{name}` 吧。"):
        assert name in kept(text=sentence).names


def test_notes_on_the_date_and_the_mode_are_not_part_of_a_summary() -> None:
    notes = (
        "[Today is Tuesday, 2026-11-24.]\n\n[Mode: draft. Only new files in drafts/ are written.]"
    )
    assert collect_verbatim([], (), [(f"Since 2026-10-01.\n\n{notes}", 3.0)]).names == [
        "2026-10-01"
    ]


def test_ordinary_words_are_no_identifiers() -> None:
    text = "Please mend the retry limit, and do not touch the old client. I think it's a bug."
    assert kept(text=text).names == []


def test_only_prompts_of_the_summarised_part_remain_and_no_commands() -> None:
    found = kept(
        said("u", "first"), said("v", "second"), said("w", "/compact", local=True),
        messages=("u", "w"),
    )  # fmt: skip
    assert found.messages == ["first"]


def test_open_todos_are_those_of_the_last_plan() -> None:
    old = PlanChanged(entries=(PlanEntry(content="old"),))
    new = PlanChanged(
        entries=(
            PlanEntry(content="done", status="completed"),
            PlanEntry(content="doing", status="in_progress"),
            PlanEntry(content="to do"),
        )
    )
    assert [entry.content for entry in kept(old, new).todos] == ["doing", "to do"]
    assert kept(old, PlanRemoved()).todos == ()


def test_files_are_those_of_edits_that_were_made() -> None:
    def call(name: str, path: str, *, failed: bool) -> list[AnyEvent]:
        identity, diff = CallId(name), (DiffPart(path, "new"),)
        return [
            ToolCalled(
                call=identity, message=MessageId("m"), name="edit", arguments="{}", title="Edit"
            ),
            ToolShown(call=identity, content=diff),
            ToolEnded(call=identity, failed=failed),
        ]

    events = [*call("a", "/p/made.py", failed=False), *call("b", "/p/refused.py", failed=True)]
    assert kept(*events).files == ["/p/made.py"]


def test_a_summary_that_lost_nothing_stays_as_it_is() -> None:
    found = Verbatim(
        messages=["do it"], todos=[PlanEntry(content="Test")], files=["/p/a.py"], names=["4711"]
    )
    summary = "The user said: do it. Left: Test. Changed /p/a.py for port 4711."
    assert append_missing(summary, found, 1_000) == summary


def test_a_number_inside_another_is_not_counted() -> None:
    found = Verbatim(messages=(), todos=(), files=(), names=["12", "pool.py"])
    text = append_missing("Port 4123, and my_pool.pyc", found, 1_000)
    assert text.endswith("Names and numbers: 12, pool.py")


def test_of_many_prompts_the_first_and_the_newest_remain_with_a_gap() -> None:
    words = [f"message {number} " + "x" * 100 for number in range(100)]
    text = append_missing("Short.", Verbatim(messages=words, todos=(), files=(), names=()), 1_000)
    assert "> message 0 " in text
    assert "> message 99 " in text
    assert "> message 50 " not in text
    assert "more messages of the user: see session_search" in text
    lines = [line for line in text.splitlines() if line.startswith("> message")]
    assert lines == sorted(lines, key=lambda line: int(line.split()[2]))


def test_prompts_of_several_lines_keep_their_lines() -> None:
    text = append_missing("S.", Verbatim(messages=["a\n  b"], todos=(), files=(), names=()), 1_000)
    assert f"{VERBATIM_HEADING}\nWhat the user said:\n> a\n>   b" in text


@given(
    st.lists(st.text(min_size=1, max_size=3_000).map(str.strip).filter(bool), max_size=30),
    st.lists(st.text(min_size=1, max_size=80), max_size=50),
    st.integers(200, 3_000),
)
def test_appended_details_never_exceed_the_limit(
    words: list[str], names: list[str], room: int
) -> None:
    found = Verbatim(
        messages=words, todos=[PlanEntry(content=name) for name in names], files=names, names=names
    )
    added = text_tokens(append_missing("", found, room)) - text_tokens(VERBATIM_HEADING)
    assert added <= room * 1.25 + 100


def test_of_very_many_identifiers_as_many_are_appended_as_fit() -> None:
    names = [f"src/module_{number:04}.py" for number in range(4_000)]
    todos = [PlanEntry(content=f"Look at {name}") for name in names]
    text = append_missing("", Verbatim(messages=(), todos=todos, files=names, names=names), 1_000)
    assert text_tokens(text) <= 1_100
    assert names[0] in text
    assert names[-1] not in text


@pytest.mark.parametrize("piece", ["-", "a-", "a/", "@", "~/.", "a.", "A_", "0a", "1:"])
@pytest.mark.parametrize("end", ["", "+", "@", ":", "A", "\\"])
def test_no_text_makes_the_search_for_names_slow(piece: str, end: str) -> None:
    kept(text=(piece + end) * 20_000)  # would run into the time limit of the tests
