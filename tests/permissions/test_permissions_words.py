"""Words as the parser reads them, held against what the shell itself makes of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import CommandContext
from acp_agent.permissions.rules import OptionSet
from acp_agent.permissions.shell.parser import parse_line

BASH = shutil.which("bash")
# The examples of a test share its folder; and the machine may be slow.
FOLDER_IS_SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)

PIECES = st.sampled_from(
    [
        "a", "b1", "-x", "/", ".", "=", ":", "%", "@", "+", ",", "é", "#",
        "''", '""', "'a b'", "'$x'", "'\\'", '"a b"', '"a\\"b"', '"\\$x"', '"\\\\"', '"\\a"',
        "\\ ", "\\'", '\\"', "\\\\", "\\$", "\\r", "\\*", "\\{", "\\~",
        "$'a'", "$'\\x41'", "$'\\101'", "$'\\u00e9'", "$'\\n'", "$'\\''", "$'\\cA'", "$'\\e'",
        "{a,b}", "{1..3}", "{c..a}", "{x}", "{,y}", "{a,{b,c}}", "'{a,b}'", "{a\\,b}",
    ]
)  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=60, suppress_health_check=FOLDER_IS_SHARED)
@given(
    words=st.lists(st.lists(PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=12)
)
def test_certain_words_equal_the_arguments_that_the_shell_passes(
    words: list[str], tmp_path: Path
) -> None:
    # A word of its own that begins with # is a comment, and so not a word.
    written = [word for word in words if not word.startswith("#")]
    line = "printf '%s\\0' " + " ".join(written)
    parsed = parse_line(line, cwd=str(tmp_path), home="/home/someone")
    if not parsed.plain or any(not word.fixed for word in parsed.commands[0].words):
        return
    assert BASH is not None
    shell = subprocess.run(
        [BASH, "--norc", "-c", line],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        timeout=20,
        env={"LC_ALL": "C.UTF-8", "HOME": "/home/someone"},
    )
    given_words = shell.stdout.decode().split("\0")[:-1]
    assert [word.text for word in parsed.commands[0].words[2:]] == (given_words if written else [])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("X=ls; $X -a /", ["ls", "-a", "/"]),
        ('X="ls -l /"; $X', ["ls", "-l", "/"]),
        ('X="a b"; echo "$X"', ["echo", "a b"]),
        ("echo ~ ~/x", ["echo", "/home/someone", "/home/someone/x"]),
        ('echo "~"', ["echo", "~"]),
        ("echo $PWD/x", ["echo", "/project/x"]),
        ("echo ${X:-a}", ["echo", "a"]),
        ("echo $(echo a b)", ["echo", "a", "b"]),
        ('echo "$(printf %s-%s a b)"', ["echo", "a-b"]),
    ],
)
def test_assignments_of_variables_in_a_line_are_applied(line: str, words: list[str]) -> None:
    parsed = parse_line(line, cwd="/project", home="/home/someone")
    assert [word.text for word in parsed.commands[-1].words] == words


def test_a_part_known_only_at_run_time_is_never_certain() -> None:
    for line in ("echo $X", 'echo "a$X"', "echo $(ls)", "echo `ls`", "echo $((1))", "echo $1"):
        parsed = parse_line(line, cwd="/project", home="/home/someone")
        assert not parsed.commands[-1].words[-1].fixed, line


def test_every_command_on_the_line_of_a_here_document_is_found() -> None:
    line = "cat <<END > out && rm x | sort\nbody\nEND\nls"
    parsed = parse_line(line, cwd="/project", home="/home/someone")
    assert [str(command) for command in parsed.commands] == ["cat", "rm x", "sort", "ls"]
    assert parsed.commands[0].stdin is not None
    assert parsed.commands[0].stdin.text == "body\n"
    assert [each.target.text for each in parsed.commands[0].redirects] == ["out"]


def test_words_after_a_redirection_are_arguments() -> None:
    parsed = parse_line("rm > log -rf x 2>&1", cwd="/project", home="/home/someone")
    (command,) = parsed.commands
    assert str(command) == "rm -rf x"
    assert [(each.operator, each.target.text) for each in command.redirects] == [
        (">", "log"),
        (">&", "1"),
    ]


FRAGMENTS = st.sampled_from(
    [
        "ls", "cat x", "echo a", "touch z", "> z", ">z", "| tee z", "cp x z", ";", "&&", "|", "\n",
        "&", "$(", ")", "`", "'", '"', "\\", " ", "<", "x", "#", "{", "}", "(", "<<E\n", "E\n",
        "\nE\n", "if true; then", "fi", "!", "time", "*", "$", "\t", "<<<", "[", "]", "-", "2",
        ">&",
        "sort", "-o z", "\\\n", "<(", ">(", "é", "\u00a0", "test -f", "grep a", "tree", "sed -n 1p",
    ]
)  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=600, suppress_health_check=FOLDER_IS_SHARED)
@given(st.lists(FRAGMENTS, min_size=1, max_size=9).map("".join))
def test_commands_that_count_as_reading_create_no_file_in_a_real_shell(
    tmp_path: Path, line: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir(exist_ok=True)
    (folder / "x").write_text("a\n")
    context = CommandContext(cwd=str(folder), roots=(str(folder),), home="/home/someone")
    if classify(line, context).tier != "read_only":
        return
    assert BASH is not None
    subprocess.run(
        [BASH, "--norc", "-c", line],
        capture_output=True,
        check=False,
        cwd=folder,
        timeout=20,
        stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path / "home")},
    )
    assert sorted(path.name for path in folder.iterdir()) == ["x"], line


OPTION_TEXTS = st.text("-+abx=", max_size=6)


@given(
    st.frozensets(OPTION_TEXTS | st.sampled_from(["", "-a", "--ab", "-abx", "+a"])), OPTION_TEXTS
)
def test_a_set_of_options_matches_like_each_of_them(options: frozenset[str], word: str) -> None:
    assert OptionSet(options).matches(word) == any(matches_one(word, each) for each in options)


def matches_one(word: str, option: str) -> bool:
    """Return whether `word` is `option`, or a cluster of short options that contains it."""
    if option.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and name.startswith("--") and option.startswith(name)
    if len(option) == 2:
        return word.startswith(option[0]) and not word.startswith("--") and option[1] in word[1:]
    return word == option
