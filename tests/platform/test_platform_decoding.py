"""Decoding to msgspec types in several threads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import acp_agent

PACKAGE = Path(acp_agent.__file__).parent
BUILT_IN = {"dict", "list", "tuple", "str", "int", "float", "bool", "bytes", "Any", "object"}

# Four threads use each of many new types for the first time, with switches as often as possible.
PROGRAM = """
import sys, threading
from msgspec import Struct, defstruct
from acp_agent.platform.decoding import convert, decode_json, json_decoder

sys.setswitchinterval(1e-6)
for number in range(300):
    inner = defstruct(f"Inner{number}", [(f"f{index}", "int | None", None) for index in range(30)])
    outer = defstruct(f"Outer{number}", [("value", inner), ("values", list[inner])])
    barrier = threading.Barrier(3)

    def use(act):
        barrier.wait()
        act()

    data = {"value": {"f0": 1}, "values": []}
    acts = (
        lambda: convert(data, outer),
        lambda: decode_json('{"value": {}, "values": []}', outer),
        lambda: json_decoder(outer),
    )
    threads = [threading.Thread(target=use, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
"""


def test_threads_can_use_a_type_for_the_first_time_at_once() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


def unlocked_calls(source: str) -> Iterator[int]:
    """Yield the lines of calls of msgspec that decode to a type other than a built-in one."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        kinds = [keyword.value for keyword in node.keywords if keyword.arg == "type"]
        match ast.unparse(node.func):
            case "msgspec.convert":
                kinds += node.args[1:2]
            case "msgspec.json.decode" | "json.decode":
                pass
            case "msgspec.json.Decoder" | "json.Decoder":
                kinds += node.args[:1]
            case _:
                continue
        names = {name.id for kind in kinds for name in ast.walk(kind) if isinstance(name, ast.Name)}
        if names - BUILT_IN:
            yield node.lineno


def test_everything_decodes_to_types_under_the_lock() -> None:
    assert list(unlocked_calls("msgspec.convert(x, Point)\nmsgspec.json.decode(x, type=list[P])"))
    calls = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "decoding.py"
        for line in unlocked_calls(path.read_text("utf-8"))
    ]
    assert calls == []
