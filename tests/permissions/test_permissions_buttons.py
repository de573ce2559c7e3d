"""The buttons of a question: what they offer, and the words in which they say it."""

from __future__ import annotations

import pytest

from acp_agent.permissions.access import Ask, CommandAccess, Refuse, Verdict, WriteAccess
from acp_agent.permissions.gate import PolicyGate
from tests.permissions.gate_room import ALL_FOUR, ONCE, Room, kinds


def test_the_buttons_describe_exactly_the_scope_of_always(room: Room) -> None:
    def label(verdict: Verdict) -> str:
        assert isinstance(verdict, Ask)
        return verdict.choices[1].label

    assert label(room.command("npm test")) == "Always allow `npm test` in this project"
    assert label(room.command("npm run build && make test -j4")) == (
        "Always allow `npm run build` and `make test` in this project"
    )
    assert label(room.command("git push -u origin main")) == (
        "Always allow `git push origin main` in this project"
    )
    assert label(room.command("make test; npm test -- --watch; ./x 'a b'")) == (
        "Always allow `make test` and exactly `npm test -- --watch` and `./x 'a b'` in this project"
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
        "在此项目中始终允许 `npm test`",
    ]
    access = CommandAccess("./x y", str(room.project))
    verdict = gate.judge(access, mode="ask", project=str(room.project))
    assert isinstance(verdict, Ask)
    assert [choice.label for choice in verdict.choices][1::2] == [
        "在此项目中始终允许完整命令 `./x y`",
        "在此项目中始终拒绝 `./x y` 命令",
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


def test_a_destructive_command_warns_and_is_never_allowed_permanently(room: Room) -> None:
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
        "f() { npm test; }; f", "cat ~/x", "grep -r x ~", "git -C x commit",
        "uv run python -c 1", "uv run --with x pytest", "uv run bash", "npm test <<< x", "bash",
        "find . -exec npm test \\;", "git config user.name x", "docker run x",
        "npm test\u00a0x", "a x && b x && c x && d x", "export X=1", "IFS=x", "python", "python -",
        "nohup ssh host ls", "npm test; eval ls", "awk -f y x", "tee x", "npm 'te st'",
        "$'a\\nb' x", "node $'x\\ny'",
        "shift", "fc -s", "history", "compgen -C x", "pushd x", "set -m", "wait -p PATH",
    ],
)  # fmt: skip
def test_no_always_is_offered_whose_label_would_be_too_vague(line: str, room: Room) -> None:
    assert kinds(room.command(line)) == ONCE


@pytest.mark.parametrize(
    ("line", "patterns"),
    [
        ("pytest tests/x.py -k y", ["pytest"]),
        ("uv run python -m pytest", ["uv run python -m pytest"]),
        ("./build.sh --all", ["./build.sh"]),
        ("python manage.py migrate --plan", ["python manage.py"]),
        ("git push origin main", ["git push"]),
        ("make test lint", ["make test"]),
        ("npm run build -- -x", ["npm run"]),
        ("npm test || exit 3", ["npm test"]),
        ("deployer staging --now", ["deployer staging"]),
        ("cargo build && cargo test", ["cargo build", "cargo test"]),
    ],
)
def test_a_never_covers_the_words_that_name_the_command(
    line: str, patterns: list[str], room: Room
) -> None:
    verdict = room.command(line)
    assert kinds(verdict) == ALL_FOUR
    assert isinstance(verdict, Ask)
    assert [grant.pattern for grant in verdict.choices[3].grants] == patterns


def test_installing_packages_can_be_refused_permanently_and_not_allowed(room: Room) -> None:
    verdict = room.command("npm install left-pad")
    assert kinds(verdict) == ["allow_once", "reject_once", "reject_always"]
    room.press(verdict, "reject_always")
    assert isinstance(room.command("npm install other", "full"), Refuse)
