"""Dialects against text that nobody would write, cut anywhere."""

import itertools
import json
import re
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from acp_agent.models.dialects.driver import FORMS
from acp_agent.models.dialects.writers import writer
from tests.models.dialect_reading import Seen, read

DIALECTS = [*FORMS, "auto"]
COMMON = [
    "<think>", "</think>", "`", "```", "~~~", "\n", "```json\n", "\n```\n", "{", "}", "[", "]",
    '"name"', '"read"', ": ", ", ", '"arguments"', '"parameters"', '{"path": "x"}', "some text ",
    "<", "｜", "<|", '"', "\\", " ", "read", "nope", "\u2581", "\U0001f600",
]  # fmt: skip
CALL = (0, "read", '{"path": "a", "limit": 3}')
# What a form's models write besides what the form itself writes.
OTHER_WHOLES = {
    "llama": [
        '{"type": "function", "name": "read", "parameters": {"path": "a"}}',
        '{"type": "function", "function": {"name": "read", "parameters": {"path": "a"}}}; ',
    ],
    "mistral": ["[THINK]", "[/THINK]", '[TOOL_CALLS]read[ARGS]{"path": "a"}'],
    "harmony": ["<|start|>assistant", "<|channel|>analysis<|message|>", "commentary", "to=read"],
    "kimi_k3": ["<|open|>think<|sep|>", "<|open|>response<|sep|>", "tools", "call"],
}
FEW = settings(max_examples=40)


def fragments(dialect: str) -> list[str]:
    """The tags of a dialect, whole calls, and halves of them."""
    found: list[str] = []
    for name in FORMS if dialect == "auto" else (dialect,):
        form = FORMS[name]
        whole = writer(name).calls([CALL])
        found += OTHER_WHOLES.get(name, [])
        found += [*form.openers, *form.ends, *form.strays, whole, whole[: len(whole) // 2]]
        found += [part for part in re.split(r"(<[^>]*>|\[[A-Z_/]+\]|\n)", whole) if part]
    return found


def cut(text: str, places: list[int]) -> list[str]:
    """The text in pieces that end at the places."""
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in itertools.pairwise(ends)]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data(), limit=st.booleans())
@FEW
def test_a_text_gives_the_same_result_with_any_cuts(
    dialect: str, data: st.DataObject, limit: bool
) -> None:
    parts = st.lists(st.sampled_from([*fragments(dialect), *COMMON]) | st.text(max_size=5))
    text = "".join(data.draw(parts))
    whole = read(dialect, text, cut=limit)
    places = data.draw(st.lists(st.integers(0, 10_000), max_size=30))
    assert read(dialect, *cut(text, places), cut=limit) == whole
    assert read(dialect, *text, cut=limit) == whole


@pytest.mark.parametrize("dialect", DIALECTS)
@given(noise=st.binary(max_size=300))
@FEW
def test_random_bytes_are_text_and_nothing_of_them_is_lost(dialect: str, noise: bytes) -> None:
    text = noise.decode("utf-8", "replace")
    told = read(dialect, text)
    assert "".join(words for _, words in told) == text if text.strip() else told == []


@pytest.mark.parametrize("dialect", [name for name in FORMS if FORMS[name].control])
@given(data=st.data())
@FEW
def test_no_control_token_ever_shows(dialect: str, data: st.DataObject) -> None:
    words = ["some text ", "{", "\n", '{"path": "x"}']
    form = FORMS[dialect]
    text = "".join(data.draw(st.lists(st.sampled_from([*fragments(dialect), *words]))))
    told = shown(read(dialect, text))
    assert not [tag for tag in (*form.openers, *form.strays) if tag in told]


NAMES = st.sampled_from(["path", "content"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
BETWEEN = st.text(st.sampled_from("abc .,\n"), max_size=20)


@pytest.mark.parametrize("dialect", FORMS)
@given(
    arguments=st.lists(st.dictionaries(NAMES, TEXTS), min_size=1, max_size=4),
    before=BETWEEN,
    places=st.lists(st.integers(0, 10_000), max_size=20),
)
@FEW
def test_calls_come_back_as_they_were_written_and_no_tag_shows(
    dialect: str, arguments: list[dict[str, str]], before: str, places: list[int]
) -> None:
    before = "" if dialect == "llama" else before + "\n"  # its calls are the whole answer
    calls = [(number, "write", json.dumps(one)) for number, one in enumerate(arguments)]
    told = read(dialect, *cut(before + writer(dialect).calls(calls), places))
    called: list[Any] = [json.loads(one[2]) for one in told if one[0] == "call"]
    assert called == arguments
    assert shown(told).strip() == before.strip()


def shown(told: Seen) -> str:
    return "".join(words for kind, words, *_ in told if kind == "text")


@given(
    said=st.lists(
        st.tuples(
            st.sampled_from(["Let me look.", "a < b", "Is `x` it?", "{no json}", "Schön 😀."]),
            st.sampled_from([name for name in FORMS if name != "llama"]),
            st.dictionaries(NAMES, TEXTS),
        ),
        min_size=1,
        max_size=4,
    ),
    places=st.lists(st.integers(0, 10_000), max_size=20),
)
@FEW
def test_all_calls_of_several_forms_in_one_answer_are_found_and_no_text_is_lost(
    said: list[tuple[str, str, dict[str, str]]], places: list[int]
) -> None:
    text = "".join(
        f"{words}\n{writer(dialect).calls([(0, 'write', json.dumps(arguments))])}\n"
        for words, dialect, arguments in said
    )
    told = read("auto", *cut(text, places))
    assert [json.loads(one[2]) for one in told if one[0] == "call"] == [one[2] for one in said]
    assert shown(told).split() == " ".join(words for words, *_ in said).split()
