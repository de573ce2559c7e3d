"""Library modules whose code runs when they are first used."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from acp_agent.platform.deferred_modules import defer, import_without


@pytest.fixture(autouse=True)
def unchanged_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Modules are found in the temporary folder; afterwards, imports are as before."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write_module(folder: Path, name: str, code: str) -> None:
    """Write a module that the test defers."""
    (folder / f"{name}.py").write_text(code)
    defer([name])


def test_the_code_of_a_deferred_module_runs_once_when_an_attribute_is_read(tmp_path: Path) -> None:
    write_module(
        tmp_path,
        "late_value",
        "import sys\nsys.late_runs = getattr(sys, 'late_runs', 0) + 1\nx = 3\n",
    )
    module = import_module("late_value")
    assert not hasattr(sys, "late_runs")
    assert (module.x, module.x) == (3, 3)
    assert sys.late_runs == 1  # type: ignore[attr-defined]  # set by the module
    del sys.late_runs  # type: ignore[attr-defined]  # likewise


def test_a_deferred_module_looks_like_any_other_after_its_first_use(tmp_path: Path) -> None:
    write_module(
        tmp_path, "late_plain", "from os import sep\nimport late_plain\nlate_plain.y = 1\n"
    )
    module = import_module("late_plain")
    assert (module.sep, module.y) == ("/", 1)
    assert type(module) is type(sys)
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert inspect.getsource(module) == (tmp_path / "late_plain.py").read_text()


def test_a_deferred_module_that_fails_says_so_at_each_use(tmp_path: Path) -> None:
    write_module(tmp_path, "late_failure", "raise ValueError('no')\n")
    module = import_module("late_failure")
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            print(module.x)


def test_threads_that_use_a_deferred_module_at_once_all_see_the_whole(tmp_path: Path) -> None:
    code = "import threading\nthreading.Event().wait(0.05)\nx = 1\n"  # others come meanwhile
    write_module(tmp_path, "late_shared", code)
    module = import_module("late_shared")
    barrier = threading.Barrier(4)
    values: list[int] = []

    def use() -> None:
        barrier.wait()
        values.append(module.x)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert values == [1, 1, 1, 1]


def test_a_server_imports_asyncio_and_msgspec_without_running_the_deferred_modules(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"  # Python 3.13 imports linecache for the code of -c
    program.write_text("""
import sys
from acp_agent.platform.deferred_modules import SERVER_MODULES, defer, import_without
defer(SERVER_MODULES)
import_without("msgspec", "typing_extensions")
import asyncio, logging, urllib.parse, msgspec
print([name for name in SERVER_MODULES if type(sys.modules.get(name)).__name__ == "module"])
print("_ssl" in sys.modules)

async def speak_tls():
    import ssl
    context = ssl.create_default_context()
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    try:
        await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=context)
    except (ssl.SSLError, OSError) as error:
        print(type(error).__name__)

asyncio.run(speak_tls())
print("_ssl" in sys.modules)
""")
    lines = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    assert lines[:2] == ["[]", "False"]
    assert lines[2] in {"SSLEOFError", "ConnectionResetError", "SSLZeroReturnError"}
    assert lines[3] == "True"


def test_a_server_answers_its_first_requests_without_inspect_and_ssl(tmp_path: Path) -> None:
    requests: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/list", "params": {}},
    ]
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "acp_agent", "--model", "demo/demo"],
        input="".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests),
        env={**os.environ, "ACP_AGENT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert '"sessions":[]' in ran.stdout
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "acp_agent.server.core" in imported
    assert imported.isdisjoint({"dis", "_ssl"})  # which the code of inspect and ssl imports


def test_a_module_can_be_imported_as_if_an_optional_one_were_not_installed(tmp_path: Path) -> None:
    (tmp_path / "optional_part.py").write_text("x = 1\n")
    (tmp_path / "with_option.py").write_text(
        "try:\n    from optional_part import x\nexcept ImportError:\n    x = 2\n"
    )
    import_without("with_option", "optional_part")
    assert import_module("with_option").x == 2
    assert import_module("optional_part").x == 1
