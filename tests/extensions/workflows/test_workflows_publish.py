"""The published schema of workflow files agrees with what reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from acp_agent.extensions.definitions.front_matter import CoreLoader
from acp_agent.extensions.workflows.parse import FIELDS, STEP_FIELDS, parse_workflow
from codegen.workflow_schema import (
    FILE_SCHEMAS,
    STEP_SCHEMAS,
    workflow_schema,
)

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "workflows.md").read_text("utf-8")
STEP = "steps:\n- id: a\n  prompt: Do it.\n"
RIGHT = [
    *re.findall(r"```yaml\n(name:.*?)```", PAGE, re.DOTALL),
    STEP,
    f"on:\n  files: [a, '!b']\n  every: 10m\n  cron: '0 9 * * *'\nmode: plan\n{STEP}",
    f"inputs:\n  one: 1\n  two:\n  three: {{description: x, required: true}}\n{STEP}",
    "steps:\n- {id: a, parallel: [{id: b, skill: fix, with: {x: 1}, continue_on_error: true}]}\n",
    "steps:\n- {id: a, prompt: 'x ${item}', for-each: [1, b], retry: 2, timeout: 60}\n",
    "steps:\n- {id: a, prompt: x, if: true, session: new, model: p/m, agent: review}\n",
]
WRONG = [
    "name: x\n",
    "steps: []\n",
    f"nmae: x\n{STEP}",
    f"mode: fast\n{STEP}",
    f"model: m\n{STEP}",
    f"on: {{hours: 1}}\n{STEP}",
    f"inputs: {{'a b': 1}}\n{STEP}",
    f"inputs: {{a: {{wanted: true}}}}\n{STEP}",
    "steps:\n- prompt: x\n",
    "steps:\n- id: a\n",
    "steps:\n- {id: a, prompt: x, skill: y}\n",
    "steps:\n- {id: a, prompt: x, retry: 11}\n",
    "steps:\n- {id: a, prompt: x, retry: true}\n",
    "steps:\n- {id: a, prompt: x, session: old}\n",
    "steps:\n- {id: a, skill: Not A Name}\n",
    "steps:\n- {id: a, parallel: []}\n",
    "steps:\n- {id: 7, prompt: x}\n",
    "steps:\n- {id: a, prompt: x, continue-on-error: yes}\n",
]


def is_valid(text: str) -> bool:
    document = yaml.load(text, CoreLoader)
    return jsonschema_rs.is_valid(json.loads(workflow_schema()), document)


def test_the_schema_has_each_field_that_is_read() -> None:
    assert set(FILE_SCHEMAS) == set(FIELDS)
    assert set(STEP_SCHEMAS) == set(STEP_FIELDS)


@pytest.mark.parametrize("text", RIGHT)
def test_values_that_are_read_match_the_schema(text: str) -> None:
    assert parse_workflow(text, "x")[1] == []
    assert is_valid(text)


@pytest.mark.parametrize("text", WRONG)
def test_values_that_are_refused_do_not_match_the_schema(text: str) -> None:
    assert parse_workflow(text, "x")[1]
    assert not is_valid(text)
