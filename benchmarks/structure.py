"""Figures of the code's structure: import cycles, sizes of modules and folders, lengths of paths.

    python -m benchmarks.structure            prints them all (`make structure`)
    python -m benchmarks.structure --check    fails if a rule is broken (`make check`)
    python -m benchmarks.structure --write    also updates the paths in docs/architecture.md

An import counts wherever it stands: under TYPE_CHECKING and within functions too.
"""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("acp_agent", "protocol")
LONGEST = 400  # lines of a module
FULLEST = 30  # modules of a folder
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PATHS_BEGIN, PATHS_END = "<!-- paths -->", "<!-- end of paths -->"


def modules() -> dict[str, Path]:
    """All modules of the product, packages included, by their dotted names."""
    found = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def cycles(files: Mapping[str, Path]) -> list[list[str]]:
    """The groups of modules that import each other, directly or not, the largest first.

    A package that hands on what its own modules define is in no cycle with them.
    """
    imports: dict[str, set[str]] = {}
    for name, file in files.items():
        found = {one for one in _imports(file, files) if one != name}
        if file.name == "__init__.py":
            found = {one for one in found if not one.startswith(f"{name}.")}
        imports[name] = found
    reach = {name: _reachable(name, imports) for name in imports}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in imports
        if name in reach[name]
    }
    return sorted(map(list, groups), key=len, reverse=True)


def _imports(file: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module:  # relative imports: ruff's TID252
            for one in node.names:
                name = f"{node.module}.{one.name}"
                if name in files:
                    yield name
                elif node.module in files:
                    yield node.module


def _reachable(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(imports[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(imports[name])
    return found


def broken_rules(files: Mapping[str, Path]) -> list[str]:
    """One sentence for each rule of the structure that is broken."""
    broken = [f"These modules import each other: {', '.join(group)}." for group in cycles(files)]
    for name, lines in _lengths(files).items():
        if lines > LONGEST:
            broken.append(f"{name} has {lines} lines; split it ({LONGEST} at most).")
    for folder, number in _folders(files).items():
        if number > FULLEST:
            broken.append(f"{folder} has {number} modules; group them ({FULLEST} at most).")
    return broken


def _lengths(files: Mapping[str, Path]) -> dict[str, int]:
    return {
        name: len(file.read_bytes().splitlines())
        for name, file in files.items()
        if file.name != "__init__.py"
    }


def _folders(files: Mapping[str, Path]) -> Counter[str]:
    return Counter(str(file.parent.relative_to(ROOT)) for file in files.values())


def path_lists(paths: Mapping[str, list[str]]) -> str:
    """The three paths as Markdown: each file in the order in which it is entered, with its topic.

    The second has only what a file edit adds to a prompt.
    """
    edit = [name for name in paths["edit"] if name not in paths["prompt"]]
    lists = (
        ("A prompt", paths["prompt"]),
        ("A tool call", edit),
        ("`session/load`", paths["load"]),
    )
    return "\n".join(
        f"### {title}\n\n" + "".join(f"- `{name}`: {_topic(name)}\n" for name in names)
        for title, names in lists
    )


def _topic(name: str) -> str:
    documented = ast.get_docstring(ast.parse((ROOT / name).read_bytes())) or ""
    line = documented.partition("\n")[0].rstrip(".")
    is_name = line.partition(" ")[0][1:2].isupper()
    return line if is_name else line[:1].lower() + line[1:]


def measured_paths() -> dict[str, list[str]]:
    """The modules that the agent runs for a prompt, a prompt that edits a file, and a load."""
    # What runs the agent is the tests' own, which `--check` must do without.
    from tests.support.module_trace import traced_paths

    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as project:
        subprocess.run(("git", "init", "--quiet", project), check=True)
        return asyncio.run(traced_paths(Path(home), Path(project)))


def _show() -> None:
    files = modules()
    lengths = _lengths(files)
    print(f"modules           {len(lengths)}")
    print(f"lines             {sum(lengths.values())}")
    print(f"median module     {median(lengths.values()):.0f} lines")
    print(f"longest module    {max(lengths.values())} lines")
    print(f"below 40 lines    {sum(lines < 40 for lines in lengths.values())}")
    folder, number = _folders(files).most_common(1)[0]
    print(f"fullest folder    {number} modules ({folder})")
    print(f"import cycles     {len(cycles(files))}")
    paths = measured_paths()
    for name, passed in paths.items():
        lines = sum(len((ROOT / one).read_bytes().splitlines()) for one in passed)
        print(f"{name + ' passes':<17} {len(passed)} modules, {lines} lines")
    if "--write" in sys.argv:
        text = ARCHITECTURE.read_text("utf-8")
        before, after = text.split(PATHS_BEGIN)[0], text.split(PATHS_END)[1]
        new = f"{before}{PATHS_BEGIN}\n{path_lists(paths)}{PATHS_END}{after}"
        ARCHITECTURE.write_text(new, "utf-8")


def _check() -> int:
    broken = broken_rules(modules())
    for sentence in broken:
        print(sentence)
    return 1 if broken else 0


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(_check())
    _show()
