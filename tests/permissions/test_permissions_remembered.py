"""What was allowed or refused for good covers what its button said, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_agent.permissions.access import Allow, Ask, CommandAccess, Mode, Refuse
from acp_agent.permissions.hosts import url_host
from tests.permissions.gate_room import ONCE, Room, kinds


@pytest.mark.parametrize(
    "line",
    ["npm test", "npm test -s", "npm test 2>&1 | tail -5", "ls && npm test", "cd src; npm test",
     "timeout 9 npm test", "npm test; npm test", "npm test &", "(npm test)"],
)  # fmt: skip
def test_an_always_allows_the_command_in_other_lines_too(line: str, room: Room) -> None:
    room.press(room.command("npm test"), "allow_always")
    (grant,) = room.store.all()
    verdict = room.command(line)
    assert isinstance(verdict, Allow)
    assert (verdict.by, verdict.rule) == ("grant", f"allow npm test (answer {grant.id})")


@pytest.mark.parametrize(
    "line",
    [
        "npm test; rm -rf x", "npm test $(evil)", "npm test > /etc/x", "npm test > x", "npm tests",
        "npm test `evil`", "npm test && evil", "npm test | evil", "npm test & evil", "npm testx",
        "npm test\nevil", "npm install", "npm run test", "evil npm test", "X=1 npm test",
        "PATH=. npm test", "npm test <(evil)", 'npm test "$X"', "npm test --prefix=/x", "npm",
        "./npm test", "npm --prefix x test", "bash -c 'npm test; evil'",
        "npm() { evil; }; npm test",
        "alias npm=evil; npm test", "npm test <<END\nx\nEND", "for x in $(y); do npm test; done",
        "npm test --script-shell=./x", "cat ~/x && npm test", "npm 'test evil'", "npm te\\st; evil",
        "sudo npm test", "npm test -- {a,b}$(x)", "npm test *", "export A=b; npm test",
        "npm test 2> x", "npm test \\\n; evil", "for x in a b; do npm test; done",
    ],
)  # fmt: skip
def test_an_always_rule_allows_only_its_command(line: str, room: Room) -> None:
    room.press(room.command("npm test"), "allow_always")
    assert not isinstance(room.command(line), Allow)


@pytest.mark.parametrize(
    ("pattern", "covered", "asked"),
    [
        ("pytest", "pytest -q", "pytest -p evil"),
        ("make", "make", "make deploy"),
        ("make test", "make test", "make test deploy"),
        ("git push", "git push", "git push origin"),
        ("npm install", None, "npm install x"),
        ("git clone", None, "git clone x"),
        ("python manage.py", None, "python manage.py migrate"),
        ("./build.sh", None, "./build.sh"),
        ("kubectl", None, "kubectl get pods"),
        ("curl", None, "curl https://example.com"),
        ("'", None, "npm test"),
        ("", None, "npm test"),
    ],
)
def test_a_grant_of_an_older_version_covers_only_what_a_new_one_covers(
    pattern: str, covered: str | None, asked: str, room: Room, tmp_path: Path
) -> None:
    grant = {"project": str(room.project), "kind": "command", "pattern": pattern, "allow": True}
    file = tmp_path / "data" / "grants.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 2, "grants": [grant]}))
    assert room.store.problem == ""
    assert covered is None or isinstance(room.command(covered), Allow)
    assert isinstance(room.command(asked), Ask)


def test_an_always_applies_to_one_project_only(room: Room, tmp_path: Path) -> None:
    room.press(room.command("npm test"), "allow_always")
    other = tmp_path / "other"
    other.mkdir()
    verdict = room.gate.judge(CommandAccess("npm test", str(other)), mode="ask", project=str(other))
    assert isinstance(verdict, Ask)


def test_an_always_holds_where_the_project_is_reached_by_a_link(room: Room, tmp_path: Path) -> None:
    room.press(room.command("npm test"), "allow_always")
    link = tmp_path / "link"
    link.symlink_to(room.project)
    verdict = room.gate.judge(CommandAccess("npm test", str(link)), mode="ask", project=str(link))
    assert isinstance(verdict, Allow)


def test_an_always_for_two_commands_allows_both_and_each(room: Room) -> None:
    room.press(room.command("npm run build && make test"), "allow_always")
    for line in ("npm run build", "make test", "make test && npm run build"):
        assert isinstance(room.command(line), Allow)


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "full"])
@pytest.mark.parametrize(
    "line", ["npm publish-x", "ls; npm publish-x a", "npm --silent publish-x",
             "bash -c 'npm publish-x'", "/usr/bin/npm publish-x", "time npm publish-x",
             "$(npm publish-x)", "npm publish-x > y"],
)  # fmt: skip
def test_a_never_rule_refuses_the_command_at_every_position(
    line: str, mode: Mode, room: Room
) -> None:
    room.press(room.command("npm publish-x"), "reject_always")
    verdict = room.command(line, mode)
    assert isinstance(verdict, Refuse)
    assert verdict.by == "grant"
    assert "`npm publish-x`" in verdict.why


def test_an_always_for_a_folder_covers_only_files_below_it(room: Room) -> None:
    room.press(room.write("src/x.py"), "allow_always")
    assert isinstance(room.write("src/deep/y.py"), Allow)
    for paths in (["x.py"], ["srcx/a.py"], ["src/a.py", "x.py"], ["src/.git/config"]):
        assert isinstance(room.write(*paths), Ask), paths


def test_a_never_for_a_folder_refuses_edits_in_full_mode_too(room: Room) -> None:
    room.press(room.write("src/x.py"), "reject_always")
    verdict = room.write("a.py", "src/deep/y.py", mode="full")
    assert isinstance(verdict, Refuse)
    assert verdict.by == "grant"


def test_an_always_for_a_host_covers_that_host_alone(room: Room) -> None:
    room.press(room.fetch("https://example.com/a"), "allow_always")
    assert isinstance(room.fetch("http://EXAMPLE.com./b"), Allow)
    for url in (
        "https://www.example.com",
        "https://example.com.evil.org",
        "https://example.com@evil.org/",
        "https://example.com:8443/",
        "https://evil.org/?https://example.com",
    ):
        assert isinstance(room.fetch(url), Ask), url


def test_a_never_for_a_host_refuses_it_in_full_mode_too(room: Room) -> None:
    room.press(room.fetch("https://example.com/a"), "reject_always")
    assert isinstance(room.fetch("https://example.com/b", "full"), Refuse)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/x", "example.com"),
        ("http://example.com:8080", "example.com:8080"),
        ("https://[::1]:99/", "[::1]:99"),
        ("https://exаmple.com", "xn--exmple-4nf.com"),
        ("https://a:b@example.com/", "example.com"),
        ("nonsense", ""),
        ("https://", ""),
        ("https://example.com:x/", ""),
        ("https://a b/", ""),
    ],
)
def test_the_host_of_a_grant_is_the_requested_host(url: str, host: str) -> None:
    assert url_host(url) == host


def test_an_address_without_a_host_is_never_allowed_permanently(room: Room) -> None:
    assert kinds(room.fetch("nonsense")) == ONCE
