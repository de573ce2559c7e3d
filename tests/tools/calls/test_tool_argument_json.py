"""The JSON of a call's arguments is read where its meaning is certain, and only there."""

from __future__ import annotations

import json
import string
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from acp_agent.tools.calls.argument_json import read_arguments

_FILE = Path(__file__).parent / "argument_json.toml"
CASES = tomllib.loads(_FILE.read_text("utf-8"))["cases"]


def objects(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects whose keys and strings are of a kind."""
    values = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=8,
    )
    return st.dictionaries(text, values, max_size=4)


OBJECTS = objects(st.text())
PLAIN_OBJECTS = objects(st.text(string.ascii_letters + string.digits + " '.:,{}[]/#"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_arguments_are_read_where_they_have_one_meaning(case: dict[str, Any]) -> None:
    if "meant" in case:
        assert read_arguments(case["text"]) == case["meant"]
    else:
        with pytest.raises(ValueError, match=r".") as refused:
            read_arguments(case["text"])
        assert case.get("why", "") in str(refused.value)


@given(OBJECTS, st.booleans())
def test_valid_json_is_read_as_json(values: dict[str, Any], ascii_only: bool) -> None:
    assert read_arguments(json.dumps(values, ensure_ascii=ascii_only)) == values


@given(OBJECTS.filter(bool), st.integers(min_value=1))
def test_cut_off_arguments_are_never_completed(values: dict[str, Any], cut: int) -> None:
    text = json.dumps(values)
    cut = cut % len(text)
    assume(text[:cut].strip())
    with pytest.raises(ValueError, match=r"."):
        read_arguments(text[:cut])


@given(PLAIN_OBJECTS)
def test_the_objects_of_python_are_read(values: dict[str, Any]) -> None:
    assert read_arguments(repr(values)) == values
