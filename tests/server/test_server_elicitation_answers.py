"""What was filled in is held against the form that was shown."""

from __future__ import annotations

from typing import Any

import pytest

from acp_agent.elicitation import Response
from acp_agent.errors import InvalidInputError
from acp_agent.server.elicitation import accept_content, validate_content


def field(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, "required": ["x"]}


TITLED = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]


@pytest.mark.covers("P12")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (field(type="string"), ""),
        (field(type="string", minLength=2, maxLength=3), "abc"),
        (field(type="string", enum=["a", "b"]), "b"),
        (field(type="string", oneOf=TITLED), "a"),
        (field(type="string", format="email"), "me@example.org"),
        (field(type="string", format="uri"), "https://example.org/x"),
        (field(type="string", format="date"), "2026-11-22"),
        (field(type="string", format="date-time"), "2026-11-22T10:00:00Z"),
        (field(type="string", format="_colour"), "anything"),
        (field(type="number", minimum=0.5), 0.5),
        (field(type="number"), 3),
        (field(type="integer", maximum=3), 3),
        (field(type="boolean"), False),
        (field(type="array", items={"type": "string", "enum": ["a", "b"]}), ["b", "a"]),
        (field(type="array", items={"anyOf": TITLED}, maxItems=1), ["a"]),
        (field(type="array", items={"anyOf": TITLED}), []),
        (field(type="_slider", steps=3), {"at": 2}),
    ],
)
def test_a_valid_value_of_a_field_is_accepted(schema: dict[str, Any], value: Any) -> None:
    assert validate_content(schema, {"x": value}) == {"x": value}


@pytest.mark.covers("P12")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (field(type="string"), 1),
        (field(type="string"), None),
        (field(type="string"), "x" * 100_001),
        (field(type="string", minLength=2), "a"),
        (field(type="string", maxLength=2), "abc"),
        (field(type="string", enum=["a"]), "A"),
        (field(type="string", oneOf=TITLED), "A"),
        (field(type="string", format="email"), "me at home"),
        (field(type="string", format="uri"), "no address"),
        (field(type="string", format="uri"), "http://[bad"),
        (field(type="string", format="date"), "22.11.2026"),
        (field(type="string", format="date-time"), "2026-11-22T10:00:00"),
        (field(type="number"), "3"),
        (field(type="number"), True),
        (field(type="number", minimum=1), 0.9),
        (field(type="integer"), 1.5),
        (field(type="integer", maximum=3), 4),
        (field(type="boolean"), "yes"),
        (field(type="boolean"), 1),
        (field(type="array", items={"enum": ["a"]}), "a"),
        (field(type="array", items={"enum": ["a"]}), [1]),
        (field(type="array", items={"enum": ["a"]}), ["b"]),
        (field(type="array", items={"enum": ["a"]}), ["a", "a"]),
        (field(type="array", items={"anyOf": TITLED}, minItems=1), []),
        (field(type="array", items={"anyOf": TITLED}, maxItems=1), ["a", "b"]),
    ],
)
def test_any_other_is_refused_by_the_name_of_the_field(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^x ") as refused:
        validate_content(schema, {"x": value})
    assert refused.value.field == "x"


@pytest.mark.covers("P12")
def test_unrequested_values_are_dropped_and_optional_ones_may_be_missing() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    assert validate_content(schema, {"a": 3.0, "b": None, "c": "more"}) == {"a": 3}
    assert type(validate_content(schema, {"a": 3.0})["a"]) is int


@pytest.mark.covers("P12")
def test_an_answer_that_does_not_fit_is_declined_and_the_log_names_the_field_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    typed = "what the user typed"
    assert accept_content(field(type="integer"), {"x": typed}) == Response(action="decline")
    assert "x must be a number" in caplog.text
    assert typed not in caplog.text


@pytest.mark.covers("P12")
def test_an_accept_without_content_is_that_of_an_empty_form() -> None:
    assert accept_content({"properties": {}}, None) == Response(action="accept", content={})
    assert accept_content(field(type="string"), None) == Response(action="decline")
