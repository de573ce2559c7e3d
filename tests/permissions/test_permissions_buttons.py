"""The buttons of a question: what they offer, and the words in which they say it."""

from __future__ import annotations

import pytest

from acp_agent.permissions.access import CommandAccess, WriteAccess
from acp_agent.permissions.contract import Ask, Verdict
from acp_agent.permissions.gate import PolicyGate
from tests.permissions.gate_room import ALL_FOUR, ONCE, Room, kinds


def test_the_buttons_say_exactly_what_always_covers(room: Room) -> None:
    def label(verdict: Verdict) -> str:
        assert isinstance(verdict, Ask)
        return verdict.choices[1].label

    assert label(room.command("npm test -- --watch")) == (
        "Always allow `npm test` commands in this project"
    )
    assert label(room.command("npm run build && make test")) == (
        "Always allow `npm run build` and `make test` commands in this project"
    )
    assert label(room.write("src/x.py")) == "Always allow edits below src/"
    assert label(room.write("x.py")) == "Always allow edits below the project folder"
    assert label(room.write("src/a.py", "src/deep/b.py")) == "Always allow edits below src/"
    assert label(room.fetch("https://Docs.Example.com:443/a?b")) == (
        "Always allow fetching from docs.example.com in this project"
    )


def test_the_buttons_speak_the_user_s_language(room: Room) -> None:
    gate = PolicyGate(room.store, language="zh", home=str(room.home))
    access = CommandAccess("npm test", str(room.project))
    verdict = gate.judge(access, mode="ask", project=str(room.project))
    assert isinstance(verdict, Ask)
    assert [choice.label for choice in verdict.choices][:2] == [
        "允许一次",
        "在此项目中始终允许 `npm test` 命令",
    ]
    for path, label in (
        ("x.py", "始终允许编辑项目文件夹之下的文件"),
        ("文档/x.py", "始终允许编辑 文档/ 之下的文件"),
    ):
        write = WriteAccess((str(room.project / path),))
        verdict = gate.judge(write, mode="ask", project=str(room.project))
        assert isinstance(verdict, Ask)
        assert verdict.choices[1].label == label


def test_allow_once_is_the_first_button_of_every_question(room: Room) -> None:
    for line in ("npm test", "rm x", "cat ~/x", "python -c 1", "x=$(y) z", "sudo ls", "a|b"):
        assert kinds(room.command(line))[0] == "allow_once"


def test_a_destructive_command_warns_and_is_never_allowed_for_good(room: Room) -> None:
    verdict = room.command("npm test && rm -rf build")
    assert kinds(verdict) == ONCE
    assert isinstance(verdict, Ask)
    assert "`rm -rf build` deletes files" in verdict.warning
    assert verdict.tier == "destructive"


def test_a_standard_command_has_no_warning(room: Room) -> None:
    verdict = room.command("npm test")
    assert isinstance(verdict, Ask)
    assert (verdict.warning, verdict.tier) == ("", "standard")


@pytest.mark.parametrize(
    "line",
    [
        "python -c 'print(1)'", "node -e 1", "bash -c 'npm test'", "env npm test", "xargs npm test",
        "curl https://example.com", "$CMD test", "npm $X", "npm test $(x)", "npm test > out",
        "npm test `x`", "PATH=. npm test", "X=$(y) npm test", "for x in a; do npm test; done",
        "f() { npm test; }; f", "cat ~/x", "grep -r x ~", "npm", "make", "git -C x commit",
        "npm --prefix x test", "go test -exec x", "make test SHELL=./x", "cargo test --config=x",
        "uv run python -c 1", "uv run --with x pytest", "uv run bash", "npm test <<< x", "bash",
        "find . -exec npm test \\;", "git config user.name x", "docker run x", "npm test *",
        "npm test\u00a0x", "a x && b x && c x && d x", "export X=1", "X=1", "python", "python -",
        "nohup ssh host ls", "npm test; eval ls", "awk 1 x", "tee x", "npm 'te st'",
        "$'a\\nb' x", "node $'x\\ny'", "go run x.go",
        "shift", "jobs", "fc -s", "history", "compgen -C x", "pushd x", "set -e", "wait -p PATH",
    ],
)  # fmt: skip
def test_no_always_is_offered_where_its_words_would_say_too_little(line: str, room: Room) -> None:
    assert kinds(room.command(line)) == ONCE


@pytest.mark.parametrize(
    ("line", "patterns"),
    [
        ("npm test", ["npm test"]),
        ("npm run build:prod -- -x", ["npm run build:prod"]),
        ("pytest tests/x.py -k y", ["pytest"]),
        ("pytest tests/*.py", ["pytest"]),
        ("python -m pytest -x", ["python -m pytest"]),
        ("python manage.py migrate", ["python manage.py"]),
        ("./build.sh all", ["./build.sh all"]),
        ("./build.sh --all", ["./build.sh"]),
        ("uv run pytest -x", ["uv run pytest"]),
        ("uv run python -m pytest", ["uv run python -m pytest"]),
        ("npx eslint .", ["npx eslint"]),
        ("git commit -m 'a b'", ["git commit"]),
        ("cargo build && cargo test", ["cargo build", "cargo test"]),
        ("cd src && make test | head -5", ["make test"]),
        ("npm test || exit 3", ["npm test"]),
        ("npm test & wait; exit", ["npm test"]),
        ("timeout 60 npm test", ["npm test"]),
        ("time CI=1 npm test 2>&1", ["npm test"]),
        ("npm test > /dev/null", ["npm test"]),
        ("deployer staging --now", ["deployer staging"]),
        ("bash scripts/x.sh", ["bash scripts/x.sh"]),
        ("'./my tool' x", ["'./my tool' x"]),
    ],
)
def test_an_always_is_about_the_words_that_name_the_command(
    line: str, patterns: list[str], room: Room
) -> None:
    verdict = room.command(line)
    assert kinds(verdict) == ALL_FOUR
    assert isinstance(verdict, Ask)
    assert [grant.pattern for grant in verdict.choices[1].grants] == patterns
