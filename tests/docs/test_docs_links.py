"""Links in the documentation lead somewhere, and nothing names the machine it was written on."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: no such file"
        assert target.is_relative_to(ROOT), f"{link}: outside of the repository"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def test_every_file_and_test_that_is_mentioned_exists() -> None:
    for page in PAGES:
        for name in re.findall(
            r"`((?:tests|acp_agent|protocol)/[\w/.:]+)`", page.read_text("utf-8")
        ):
            path, _, function = name.partition("::")
            assert (ROOT / path).exists(), f"{page.name}: {name}"
            if function:
                tree = ast.parse((ROOT / path).read_text("utf-8"))
                defined = {getattr(node, "name", None) for node in ast.walk(tree)}
                assert function in defined, f"{page.name}: {name}"


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"/(work/(main|shared|[.])|farm/|root/[.a-z])", "a path of one machine"),
        (r"/opt/(pypi|wheels)|\"resolved\":", "somebody's package registry"),
    ],
)
def test_no_tracked_file_names_what_is_only_on_one_machine(pattern: str, what: str) -> None:
    found = grep("-nIE", pattern)
    assert found == [], f"{what}: {found}"


def grep(*arguments: str) -> list[str]:
    """The lines of tracked files that `git grep` finds, but for those of this test."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git clone")
    done = subprocess.run(
        ["git", "grep", *arguments, "--", ".", ":!tests/docs/test_docs_links.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout.splitlines()
