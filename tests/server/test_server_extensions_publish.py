"""The published schemas of our own methods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from codegen.extension_schemas import METHODS, extensions_schema
from tests.server.server_session import OpenSession
from tests.support.model_server import ModelServer, Stall, answer

ROOT = Path(__file__).resolve().parents[2]


def load_schema(name: str) -> Any:
    document = json.loads(extensions_schema())
    return jsonschema_rs.validator_for({**document, "$ref": f"#/$defs/{name}"})


def test_each_method_has_its_two_types_and_every_type_is_described() -> None:
    definitions = json.loads(extensions_schema())["$defs"]
    by_method: dict[str, set[str]] = {}
    for name, definition in definitions.items():
        assert definition["description"]
        if "x-method" in definition:
            by_method.setdefault(definition["x-method"], set()).add(name)
    assert by_method == {
        method: {request.__name__, response.__name__}
        for method, (request, response) in METHODS.items()
    }


@pytest.mark.parametrize("method", METHODS)
def test_the_page_of_the_extensions_tells_of_every_method(method: str) -> None:
    assert f"`{method}`" in (ROOT / "docs" / "extensions.md").read_text(encoding="utf-8")


async def test_messages_match_the_published_schema(
    opened: OpenSession, model_server: ModelServer
) -> None:
    stall = Stall()
    model_server.add(answer("Nearly ", stall, "done."), answer("More."))
    running, session = await opened()
    steer = {"sessionId": session, "prompt": [{"type": "text", "text": "more"}]}
    load_schema("SteerRequest").validate(steer)
    late = await running.request("_session/steering", steer)
    prompt = running.post_prompt(session, "work")
    await running.expect_update(session, "agent_message_chunk")
    in_time = await running.request("_session/steering", steer)
    stall.release()
    await running.result(prompt)
    for answered in (late, in_time):
        load_schema("SteerResponse").validate(answered)
    export: dict[str, Any] = {"sessionId": session, "format": "md", "maxBytes": 1_000}
    load_schema("ExportSessionRequest").validate(export)
    part = await running.request("_acp-agent/session/export", export)
    load_schema("ExportSessionResponse").validate(part)
    assert not load_schema("ExportSessionRequest").is_valid(export | {"format": "pdf"})
    assert not load_schema("PromptMarker").is_valid({"whileRunning": "drop"})
