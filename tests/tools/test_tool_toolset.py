from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from acp_agent.errors import ToolError
from acp_agent.tools.read import ReadTool
from acp_agent.tools.spec import ToolSpec
from acp_agent.tools.toolset import Toolset
from tests.support.tool_calls import ToolUser

NAMES = [
    "read", "write", "edit", "list", "glob", "grep", "shell", "background", "web_fetch", "todo",
    "ask_user",
]  # fmt: skip


@pytest.fixture
def user(tmp_path: Path) -> ToolUser:
    return ToolUser(tmp_path.resolve())


def refusal(user: ToolUser, name: str, arguments: str) -> str:
    with pytest.raises(ToolError) as caught:
        user.tools.resolve(name, arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert "pydantic" not in message
    return message


def test_the_core_tools_exist_in_a_fixed_order(user: ToolUser) -> None:
    assert [spec.name for spec in user.tools.specs()] == NAMES


def test_two_tools_of_one_name_are_refused(user: ToolUser) -> None:
    with pytest.raises(ValueError, match="two tools are named read"):
        Toolset([ReadTool(user.workspace), ReadTool(user.workspace)])


def test_the_size_of_a_tool_counts_all_that_the_model_is_sent() -> None:
    tool = ToolSpec(name="größe", description="Ask for 大小.", parameters={"type": "object"})
    assert tool.size == len("größe".encode()) + len("Ask for 大小.".encode()) + 17


async def _nowhere(point: int | None, message: str, files: bool) -> str:
    return ""


def test_the_tools_share_of_a_request_is_small(user: ToolUser) -> None:
    assert len(msgspec.json.encode(user.tools.specs())) <= 10_000
    for spec in user.tools.specs():
        assert len(spec.description) <= 900, spec.name


SPECS = """
import sys
from pathlib import Path
import msgspec
from tests.support.tool_calls import ToolUser
sys.stdout.buffer.write(msgspec.json.encode(ToolUser(Path(sys.argv[1])).tools.specs()))
"""


def test_the_specs_are_the_same_bytes_in_every_process(user: ToolUser) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SPECS, str(user.folder)],
        capture_output=True,
        timeout=60,
        check=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert run.stdout == msgspec.json.encode(user.tools.specs())


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_plain_and_lean(user: ToolUser, name: str) -> None:
    spec = next(spec for spec in user.tools.specs() if spec.name == name)
    assert jsonschema_rs.meta.is_valid(spec.parameters)
    assert spec.parameters["type"] == "object"
    text = json.dumps(spec.parameters)
    for word in ("$ref", "$defs", "anyOf", '"title"', '"default"', "additional"):
        assert word not in text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"path": "a", "line": 3}),
        ("grep", {"pattern": "x", "glob": "*.py", "mode": "files"}),
        ("todo", {"todos": [{"content": "x", "status": "completed"}]}),
        ("ask_user", {"question": "?", "options": [{"label": "a"}]}),
    ],
)
def test_schema_and_validation_agree(
    user: ToolUser, name: str, arguments: dict[str, object]
) -> None:
    spec = next(spec for spec in user.tools.specs() if spec.name == name)
    validator = jsonschema_rs.validator_for(spec.parameters)
    assert validator.is_valid(arguments)
    user.tools.resolve(name, json.dumps(arguments))
    wrong: dict[str, object] = dict.fromkeys(arguments, False)
    assert not validator.is_valid(wrong)
    refusal(user, name, json.dumps(wrong))


def test_the_error_for_an_unknown_tool_lists_the_existing_ones(user: ToolUser) -> None:
    with pytest.raises(ToolError, match=r"no tool 'reader'; did you mean 'read'\? the tools"):
        user.tools.get("reader")
    with pytest.raises(ToolError, match="the tools are read, write, edit"):
        user.tools.get("xyzzy")


@pytest.mark.parametrize("text", ["{", '{"path": "a"', '{"path": "\\ud800"}', "[" * 100_000])
def test_arguments_that_are_not_json_are_refused(user: ToolUser, text: str) -> None:
    assert "are not valid JSON" in refusal(user, "read", text)


@pytest.mark.parametrize(
    ("text", "description"),
    [("[]", "an array"), ('"a"', "a string"), ("7", "the number 7")],
)
def test_arguments_that_are_no_object_are_refused(
    user: ToolUser, text: str, description: str
) -> None:
    assert f"must be a JSON object, not {description}; write" in refusal(user, "read", text)


def test_no_arguments_at_all_are_an_empty_object(user: ToolUser) -> None:
    assert user.tools.resolve("list", "").params.model_dump() == {
        "path": ".",
        "depth": 1,
    }
    assert "path is required" in refusal(user, "read", "")


def test_an_unknown_parameter_is_ignored_and_named_once(user: ToolUser) -> None:
    text = '{"path": "a", "old": "x", "new": "y", "fuzz": 2, "explanation": "so"}'
    assert user.tools.resolve("edit", text).ignored == ("fuzz",)
    assert user.tools.resolve("edit", text).ignored == ()
    message = refusal(user, "edit", '{"path": "a", "text": "x", "new": "y"}')
    assert "old is required" in message
    assert message.endswith("its parameters are path, old, new, all")


def test_the_error_for_a_wrong_value_says_what_is_allowed(user: ToolUser) -> None:
    message = refusal(user, "read", '{"path": "a", "line": 0}')
    assert "line should be greater than or equal to 1 (it is the number 0)" in message
    message = refusal(user, "read", '{"path": [1]}')
    assert "path should be a valid string (it is an array)" in message


def test_many_unknown_parameters_are_ignored_and_the_rest_explained(user: ToolUser) -> None:
    surplus = {f"{'x' * 500}{n}": n for n in range(1_000)}
    assert len(refusal(user, "read", json.dumps(surplus))) < 2_000


def test_a_number_written_as_text_is_understood(user: ToolUser) -> None:
    call = user.tools.resolve("read", '{"path": "a", "line": "12"}')
    assert call.params.model_dump()["line"] == 12
