"""The file from which a start loads its modules."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_agent.platform import module_cache

MODULES = 30  # more than may be missing before the file is written again


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a package of MODULES modules that print their number when they are imported."""
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for number in range(MODULES):
        (folder / f"m{number}.py").write_text(f"print({number})\n")
    return tmp_path


def start(folder: Path, key: str = "same", code: str = "") -> str:
    """Import the package in a new process with the cache, then save; return what it printed.

    Prints how many modules came from the cache at the end.
    """
    program = f"""
import importlib, sys
sys.path.insert(0, {str(folder)!r})
from acp_agent.platform.module_cache import ModuleCache
cache = ModuleCache({str(folder / "cache.bin")!r}, ({key!r},))
sys.meta_path.insert(0, cache)
for number in range({MODULES}):
    importlib.import_module(f"sample.m{{number}}")
cached = [
    name for name, module in sys.modules.items()
    if name.startswith("sample.") and type(module.__spec__.loader).__name__ == "_CachedLoader"
]
print("cached", len(cached))
cache.save()
{code}
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(output: str) -> list[str]:
    return [line for line in output.splitlines() if not line.startswith("cached")]


def cached(output: str) -> int:
    return int(output.rsplit("cached ", 1)[1].split(maxsplit=1)[0])


def test_the_second_start_loads_its_modules_from_the_file(package: Path) -> None:
    first, second = start(package), start(package)
    assert cached(first) == 0
    assert cached(second) == MODULES
    assert printed(first) == printed(second) == [str(number) for number in range(MODULES)]


def test_a_changed_module_is_loaded_from_its_source(package: Path) -> None:
    start(package)
    (package / "sample" / "m3.py").write_text("print('changed')\n")
    output = start(package)
    assert cached(output) == MODULES - 1
    assert printed(output)[3] == "changed"


def test_a_deleted_module_is_not_found(package: Path) -> None:
    start(package)
    code = f"""
import os
os.unlink({str(package / "sample" / "m3.py")!r})
del sys.modules["sample.m3"]
print(cache.find_spec("sample.m3", None))
"""
    assert start(package, code=code).endswith("None\n")


def test_a_file_of_another_interpreter_is_not_used_and_replaced(package: Path) -> None:
    start(package)
    assert cached(start(package, key="other")) == 0
    assert cached(start(package, key="other")) == MODULES


@pytest.mark.parametrize("keep", [0, 4, 40, 0.5])
def test_modules_load_as_usual_from_a_file_that_is_cut_off(package: Path, keep: float) -> None:
    start(package)
    file = package / "cache.bin"
    content = file.read_bytes()
    file.write_bytes(content[: int(keep if keep >= 1 or not keep else len(content) * keep)])
    assert printed(start(package)) == [str(number) for number in range(MODULES)]


def test_modules_load_as_usual_where_code_in_the_file_is_zeros(package: Path) -> None:
    start(package)
    file = package / "cache.bin"
    content = file.read_bytes()
    length = 8 + int.from_bytes(content[:8], "little")
    file.write_bytes(content[:length] + bytes(len(content) - length))
    assert printed(start(package)) == [str(number) for number in range(MODULES)]


def test_the_file_gains_modules_and_loses_none_that_another_start_needs(package: Path) -> None:
    start(package)
    other = package / "more"
    other.mkdir()
    (other / "__init__.py").write_text("")
    for number in range(MODULES):
        (other / f"m{number}.py").write_text("")
    names = f"[f'more.m{{number}}' for number in range({MODULES})]"
    other_start = f"""
second = ModuleCache({str(package / "cache.bin")!r}, ("same",))
[importlib.import_module(name) for name in {names}]
second.save()
"""
    start(package, code=other_start)
    output = start(package, code=f"print(all(cache.find_spec(name, None) for name in {names}))")
    assert cached(output) == MODULES
    assert output.endswith("True\n")


def test_leftovers_of_a_killed_process_are_overwritten(package: Path) -> None:
    (package / "cache.bin.new").write_bytes(b"x" * 10_000_000)
    start(package)
    assert cached(start(package)) == MODULES
    assert [path.name for path in package.glob("cache.bin*")] == ["cache.bin"]


def test_a_file_that_another_process_writes_is_left_alone(package: Path) -> None:
    with (package / "cache.bin.new").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert cached(start(package)) == 0
        assert not (package / "cache.bin").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_that_is_not_writable_is_left_alone(package: Path) -> None:
    package.chmod(0o555)
    try:
        assert cached(start(package)) == 0
    finally:
        package.chmod(0o755)


def test_a_process_that_must_not_write_bytecode_writes_no_file(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = package / "cache.bin"
    monkeypatch.setattr(sys, "meta_path", [module_cache.ModuleCache(str(path), ()), *sys.meta_path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module_cache.save()
    assert not list(package.glob("cache.bin*"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    module_cache.save()
    assert path.exists()


def test_a_process_with_another_search_path_does_not_use_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finders = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(finders))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    module_cache.use()
    assert sys.meta_path == finders
    monkeypatch.delenv("PYTHONPATH")
    module_cache.use()
    assert len(sys.meta_path) == len(finders) + 1
