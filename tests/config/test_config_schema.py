"""The published schema of the configuration file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from acp_agent.config.schema import config_schema

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("", True),
        ('mode = "plan"\n[limits]\nmax_retries = 3\n[providers.x]\nbase_url = "http://h/v1"', True),
        ("[skills.a]\nmodel = 'small'\n[agents.b]\nmodel = 'a/b'\ntemperature = 0.5", True),
        ("[skills.a]\nmodel = 'smaller'", False),
        ("unknown = 1", False),
        ('mode = "pla"', False),
        ("[limits]\nmax_retries = 99", False),
        ('[models."a/b".price]\ninput = 1', False),
    ],
)
def test_the_schema_and_the_program_accept_the_same_files(text: str, valid: bool) -> None:
    validator = jsonschema_rs.validator_for(json.loads(config_schema()))
    assert validator.is_valid(tomllib.loads(text)) is valid
