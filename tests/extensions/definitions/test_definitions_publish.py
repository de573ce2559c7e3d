"""The published schemas of the front matter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema_rs
import pytest

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.fields import (
    AgentFields,
    RunFields,
    SkillFields,
    parse_fields,
)
from acp_agent.extensions.definitions.front_matter import read_front_matter
from codegen.definition_schemas import PUBLISHED, definition_schema

ROOT = Path(__file__).resolve().parents[3]
BOTH = "name: fix\ndescription: Mends it.\n"


@pytest.mark.parametrize("kind", [SkillFields, AgentFields])
@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (BOTH, True),
        (BOTH + "model: small\neffort: off\ntools: read, shell\ncolour: red", True),
        (BOTH + "license:\ntemperature: 0.5\nmax-requests: 3\nmaxTurns: 4", True),
        (BOTH + "tools: []\ndisallowedTools: [a]", True),
        (BOTH + "tools:", False),
        (BOTH + "effort: huge", False),
        (BOTH + "temperature: 3", False),
        (BOTH + "disallowed-tools: {a: true}", False),
        ("name: Fix\ndescription: Mends it.", False),
        ('name: "fix\\n"\ndescription: Mends it.', False),
        ("name: fix\ndescription: ''", False),
        ("description: Mends it.", False),
    ],
)
def test_editors_that_check_by_a_schema_agree_with_the_program(
    kind: type[RunFields], text: str, valid: bool
) -> None:
    name = next(name for name, (_, type_) in PUBLISHED.items() if type_ is kind)
    fields, _ = read_front_matter(f"---\n{text}\n---\n")
    assert jsonschema_rs.is_valid(json.loads(definition_schema(name)), fields) is valid
    assert accepted(fields, kind) is valid


def accepted(fields: Mapping[str, object], kind: type[RunFields]) -> bool:
    try:
        parse_fields(fields, SkillFields) if kind is SkillFields else parse_fields(
            fields, AgentFields
        )
    except ConfigError:
        return False
    return True


def test_an_agent_may_inherit_its_description() -> None:
    schema = json.loads(definition_schema("agent.schema.json"))
    assert jsonschema_rs.is_valid(schema, {"name": "a", "extends": "b"})
    assert not jsonschema_rs.is_valid(schema, {"name": "a"})
