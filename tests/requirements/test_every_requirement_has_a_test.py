"""The requirements of the wire and the tests that hold them, compared both ways."""

from __future__ import annotations

import pytest

from acp_agent.server.initialize import SUPPORTED_VERSIONS
from tests.requirements import conformance, marks
from tests.requirements.marks import covered, marked

_FIELDS = {"title", "later", "waived"}


@pytest.fixture(scope="module")
def requirements() -> dict[str, dict[str, str]]:
    """The requirements by id."""
    return marks.requirements()


def test_every_requirement_is_held_by_a_test_or_waived_with_a_reason(
    requirements: dict[str, dict[str, str]],
) -> None:
    held = covered()
    open_ones = {
        name: entry["title"]
        for name, entry in requirements.items()
        if name not in held and not entry.get("waived", "").strip()
    }
    assert not open_ones


def test_no_requirement_is_both_waived_and_held(
    requirements: dict[str, dict[str, str]],
) -> None:
    held = covered()
    assert not {
        name: held[name] for name, e in requirements.items() if "waived" in e and name in held
    }


def test_no_test_names_a_requirement_that_does_not_exist(
    requirements: dict[str, dict[str, str]],
) -> None:
    assert not {name: files for name, files in covered().items() if name not in requirements}


def test_the_list_is_complete_and_describes_each_entry(
    requirements: dict[str, dict[str, str]],
) -> None:
    expected = [
        f"{letter}{number}"
        for letter, last in (("T", 10), ("I", 6), ("S", 6), ("P", 14))
        for number in range(1, last + 1)
    ]
    assert list(requirements) == expected
    for name, entry in requirements.items():
        assert set(entry) <= _FIELDS, name
        assert entry["title"].strip(), name


def test_a_mark_is_found_at_every_position() -> None:
    source = (
        "@pytest.mark.covers('T1', 'T2')\ndef test_a(): ...\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.covers('T3'))])\n"
        "def test_b(): ...\n# @pytest.mark.covers('T4')\n"
    )
    assert sorted(marked(source)) == ["T1", "T2", "T3"]


def test_the_table_has_each_requirement_with_its_state_and_its_tests() -> None:
    table = "\n".join(conformance.rows())
    for name, entry in marks.requirements().items():
        assert f"\n{name:4}{entry['title']}" in table
    assert "test_server_statemachine_sessions.py" in table


@pytest.mark.parametrize("version", SUPPORTED_VERSIONS)
def test_the_updates_that_the_server_makes_are_found_in_its_code(version: int) -> None:
    made = conformance.updates_made(version)
    assert {"agent_message_chunk", "tool_call_update", "usage_update"} <= made
