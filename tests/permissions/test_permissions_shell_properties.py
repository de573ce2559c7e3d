"""Properties that hold for every command line, tried with generated ones."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings, strategies as st

from acp_agent.permissions.classify import classify
from acp_agent.permissions.paths import CommandContext

CONTEXT = CommandContext(
    cwd="/home/someone/project", roots=("/home/someone/project",), home="/home/someone"
)

BLOCKED = st.sampled_from(
    [
        "rm -rf /",
        "rm -fr ~/",
        "\\rm -rf /*",
        "dd if=x of=/dev/sda",
        "mkfs.ext4 /dev/sda1",
        "shutdown now",
        "kill -9 -1",
        "chmod -R 777 /",
        "cat x > /dev/sda",
        'eval "$x"',
    ]
)
READS = st.sampled_from(["ls", "cat x", "git status", "grep -rn a .", "pwd", "echo a", "true"])
WRITES = st.sampled_from(
    ["touch y", "npm test", "mv a b", "git commit -m x", "echo x > y", "./run", "python x.py"]
)
AROUND = st.sampled_from(
    [
        "{}",
        "ls; {}",
        "{}; ls",
        "ls && {}",
        "{} || ls",
        "ls | {}",
        "{} | ls",
        "ls & {}",
        "{} &",
        "ls\n{}",
        "({})",
        "{{ {}; }}",
        "! {}",
        "if {}; then ls; fi",
        "if ls; then {}; else ls; fi",
        "while {}; do ls; done",
        "for i in a b; do {}; done",
        "for ((i=0;i<3;i++)); do {}; done",
        "case x in x) {};; esac",
        "echo $({})",
        'echo "$({})"',
        "cat <({})",
        "x=$({}) ls",
        "f() {{ {}; }}; f",
        "echo ${{x:-$({})}}",
        "[[ -n $({}) ]]",
        "cat <<END\n$({})\nEND",
        "# note\n{}",
        "{} # note",
        "ls 'a;b' && {} && echo \"c|d\"",
    ]
)
WRAPPED = st.sampled_from(
    [
        "{}",
        "sh <<'END'\n{}\nEND",
        "eval '{}'",
        "bash -c '{}'",
        "bash -lc '{}'",
        "env sh -c '{}'",
        "sudo sh -c '{}'",
        "timeout 5 sh -c '{}'",
        "nohup nice -n 5 bash -c '{}'",
        "find . -exec sh -c '{}' \\;",
        "xargs sh -c '{}'",
        "trap '{}' EXIT",
        "watch '{}'",
        "ssh host '{}'",
        "command exec busybox sh -c '{}'",
    ]
)


def _put(line: str, form: str) -> str:
    """`line` in `form`; around a here-document, whose end needs a line, only whole lines stand."""
    return f"ls\n{line}\nls" if "<<" in line else form.format(line)


@settings(max_examples=150)
@given(BLOCKED, WRAPPED, st.lists(AROUND, min_size=1, max_size=3))
def test_a_refused_command_stays_refused_wherever_it_is_hidden(
    command: str, wrapper: str, around: list[str]
) -> None:
    line = wrapper.replace("{}", command)
    for form in around:
        line = _put(line, form)
    assert classify(line, CONTEXT).tier == "blocked", line


@settings(max_examples=150)
@given(READS, WRITES, st.lists(AROUND, min_size=1, max_size=2))
def test_a_line_with_a_write_in_it_never_counts_as_reading(
    read: str, write: str, around: list[str]
) -> None:
    line = f"{read} && {write}"
    for form in around:
        line = _put(line, form)
    assert classify(line, CONTEXT).tier != "read_only", line


SHELLISH = st.lists(
    st.sampled_from(
        [*"ab /.$(){}[]<>|&;'\"`\\\n\t#*?!=~-+:,%@^0123", "rm", "EOF", "<<", "é", "if "]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=400)
@given(st.one_of(SHELLISH, st.text(max_size=60)))
def test_any_text_at_all_gets_a_tier(text: str) -> None:
    assert classify(text, CONTEXT).tier in {"read_only", "standard", "destructive", "blocked"}


@settings(max_examples=200)
@given(SHELLISH, st.sampled_from(["rm -rf /", "mkfs /dev/sda"]))
def test_a_refused_command_in_a_line_of_its_own_is_found_after_any_valid_text(
    text: str, command: str
) -> None:
    before = classify(text, CONTEXT)
    if before.plain and "<<" not in text and not text.endswith("\\"):
        assert classify(f"{text}\n{command}", CONTEXT).tier == "blocked"


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "(",
        "$(",
        "{",
        "[[ ",
        "if ",
        "rm x;",
        "<<A ",
        "'\"`",
        "a|",
        "{a,b}",
        "\\\n",
        "$x",
        ")",
        ",)",
        "a=(",
        "=~ ",
    ],
)
def test_a_line_of_a_hundred_kilobytes_is_judged_quickly(piece: str) -> None:
    for size in (60_000, 100_000):
        line = piece * (size // len(piece))
        began = time.process_time()
        tier = classify(line, CONTEXT).tier
        assert time.process_time() - began < 10
        assert tier != "read_only"


@pytest.mark.parametrize(
    "line",
    [
        "env " + "".join(f"-C d{number} " for number in range(17)) + "rm x",
        f"x={'a' * 30_000}; rm " + "${x%%*a*a*a*b} " * 120,
    ],
    ids=["many folders", "long values that are cut"],
)
def test_a_line_that_multiplies_is_judged_quickly(line: str) -> None:
    began = time.process_time()
    assert classify(line, CONTEXT).tier == "destructive"
    assert time.process_time() - began < 10


LONG = "It's $x `y` (a|b) {c}; " * 800


@pytest.mark.parametrize(
    ("line", "tier"),
    [
        (f"cat <<'END' > y\n{LONG}\nEND", "standard"),
        (f"cat <<'END' > y\n{LONG}\nEND\nrm x", "destructive"),
        (f"cat <<'END' > y\n{LONG}\nEND\nrm -rf /\n", "blocked"),
        (f"cat <<'END' | sh\nrm -rf /\n{LONG}\nEND", "blocked"),
        (f"cat <<-END > y\n{'a|b ' * 2000}\n\tEND\nls", "standard"),
        (f"""python -c '{LONG.replace("'", "")}'""", "standard"),
        (f"""sh -c '{"ls; " * 200}rm x; {"a|b;" * 300}'""", "destructive"),
        (f'git commit -m "{"(a|b) " * 900}"', "standard"),
        (f"git commit -m \"$(cat <<'END'\n{LONG}\nEND\n)\"", "standard"),
        # quotes that are none, and documents that end earlier than they seem to
        (f"ls # it's\nrm -rf /\n{'a|b; ' * 900} # '", "blocked"),
        (f"cat <<A; cat <<B\nx\nA\n{'a|b ' * 900}\nB\nrm -rf /", "blocked"),
        (f"echo \\' ; rm -rf / ; {'a|b; ' * 900}'", "blocked"),
    ],
    ids=range(12),
)
def test_only_long_quoted_texts_are_replaced(line: str, tier: str) -> None:
    assert classify(line, CONTEXT).tier == tier


def test_a_command_behind_a_very_long_text_is_not_run_unseen() -> None:
    assert classify(f"echo {'a' * 200_000}; rm -rf /", CONTEXT).tier == "blocked"


@pytest.mark.parametrize("depth", [5, 50, 500])
def test_nested_shells_are_parsed_or_refused(depth: int) -> None:
    line = "rm -rf /"
    for _ in range(min(depth, 5)):
        line = "sh -c " + "'" + line.replace("'", "'\\''") + "'"
    nested = "$(" * depth + line + ")" * depth
    assert classify(f"echo {nested}", CONTEXT).tier == "blocked"
