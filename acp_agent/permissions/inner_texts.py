"""Find commands in the words of containers, awk, sed and language interpreters.

These programs run commands that their words contain: `docker run`, `kubectl exec`, awk, sed,
`python -c` and the like.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from acp_agent.permissions.rules import option_matches, option_set, shell_rules
from acp_agent.permissions.shell.syntax import Assignment, Command
from acp_agent.permissions.shell.words import Word
from acp_agent.permissions.wrapped_commands import base_name

_MAX_WORD_LENGTH = 4_000  # characters of a word that are checked
_CONTAINER_VERBS = frozenset({"run", "exec", "create"})
_GROUPS = frozenset({"container", "compose"})
_AFTER_DASHES = frozenset({"kubectl", "oc", "k3s"})
_LETTERS = "[dDitqPT]"  # options without a value
_TAKES_VALUE = re.compile(rf"--[^=]+|-{_LETTERS}*(?!{_LETTERS})[a-zA-Z]")

_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})
_STRING = r'"((?:[^"\\]|\\.)*)"'
_AWK_RUNS = re.compile(rf"system\s*\(\s*{_STRING}|{_STRING}\s*\|&?\s*getline|\|&?\s*{_STRING}")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_CALL = re.compile(
    r"\b(?:system|popen\d?|exec\w*|cmd|spawn\w*|Popen|run|call|check_\w+|get\w*output|shell_exec"
    r"|passthru|do shell script)\s*\(?\s*"
    rf"(\[[^]]*\]|(?:{_QUOTED.pattern})(?:\s*,\s*(?:{_QUOTED.pattern}))*)",
    re.DOTALL,
)
_AWK_PIPES = re.compile(r'\|&?\s*"\s*(?:/\S*/)?(?:sh|bash|dash|ksh|zsh)\b')
_AWK_WRITES = re.compile(r'>\s*"([^"\s]+)"')
_SED_WRITES = re.compile(
    r"(?:^|[;{}\n])[\s\d,$!]*[wW][ \t]+([^\s;}]+)"
    r"|s([^\w\s\\])(?:\\.|(?!\2)[^\\])*\2(?:\\.|(?!\2)[^\\])*\2[gpiImM\d]*[wW][ \t]+([^\s;}]+)"
)
_SHELL_ESCAPES = re.compile(
    r"(?:^|[|;\n])[\s:\d,%$.]*(?:sil\w*!?\s+)?"
    r"(?:[rwe]\s+)?(?:!+|\\!|\.?(?:shell|system)\s|platform shell\s)\s*([^\n]+)"
    r'|\((?:async-)?shell-command\s+"([^"]+)"|\bsystem\(\s*[\'"]([^\'"]+)[\'"]'
)
_SEDS = frozenset({"sed", "gsed"})
_MAKES = frozenset({"make", "gmake"})
_MAKEFILE_INPUTS = frozenset({"-", "-f-", "--file=-", "--makefile=-", "/dev/stdin"})
_MAKE_SHELL = re.compile(r"\$[({]shell\s+([^)}]+)")
_BACKTICKS = re.compile(r"`([^`]+)`|(?:%x|qx)[\[{(/|]([^\]})/|]+)")
_TCL_CALLS = re.compile(r"\b(?:exec|spawn|system)\s+(?:-\w+\s+)*([^\]\n;]+)")
_LANGUAGE_CALLS = {
    "perl": _BACKTICKS, "php": _BACKTICKS, "ruby": _BACKTICKS,
    "expect": _TCL_CALLS, "tclsh": _TCL_CALLS,
}  # fmt: skip
_SED_RUNS = re.compile(r"(?:^|[\s;{}!$/,\d])e[ \t]+([^\n]+)")
_SED_REPLACES = re.compile(
    r"s([^\w\s\\])(?:\\.|(?!\1)[^\\])*\1((?:\\.|(?!\1)[^\\])*)\1[gpiImM\d]*e", re.DOTALL
)
_SED_FILES = re.compile(r"(?:^|[\s;{}!$/,\dgp])[rRwW][ \t]*([^\s;}]+)")


def inner_texts(command: Command) -> Iterator[str]:
    """Yield the command lines that a command's words contain."""
    name, words = base_name(command), [word.text[:_MAX_WORD_LENGTH] for word in command.words[1:]]
    if name in shell_rules().languages.containers:
        yield from _container_commands(words)
    elif name in _AFTER_DASHES and "exec" in words and "--" in words:
        yield shlex.join(words[words.index("--") + 1 :])
    else:
        yield from program_texts(command)


def program_texts(command: Command) -> Iterator[str]:
    """Yield the command lines that a program text in a command's words runs on this machine."""
    name, inline = base_name(command), shell_rules().languages.inline
    if name in shell_rules().languages.shell_escapes:
        stdin = command.stdin.text if command.stdin is not None else ""
        for text in (*(word.text.lstrip("+") for word in command.words[1:]), stdin):
            for match in _SHELL_ESCAPES.finditer(text[:_MAX_WORD_LENGTH]):
                yield next(group for group in match.groups() if group is not None)
        for text in (word.text for word in command.words[1:]):
            yield from _called_commands(text[:_MAX_WORD_LENGTH])
    if name in _MAKES:
        yield from _recipe_lines(command)
    if name not in inline and name not in _AWKS and name not in _SEDS:
        return
    words = [word.text[:_MAX_WORD_LENGTH] for word in command.words[1:]]
    if name in inline:
        for text in _inline_programs(command):
            yield from _called_commands(text)
            pattern = _LANGUAGE_CALLS.get(name)
            for match in pattern.finditer(text) if pattern else ():
                yield next(group for group in match.groups() if group is not None)
    elif name in _AWKS:
        for match in (candidate for word in words for candidate in _AWK_RUNS.finditer(word)):
            text = next(part for part in match.groups() if part is not None)
            yield re.sub(r"\\(.)", r"\1", text)
    elif name in _SEDS:
        for word in words:
            yield from (match[1] for match in _SED_RUNS.finditer(word))
            yield from (match[2] for match in _SED_REPLACES.finditer(word))


def _called_commands(text: str) -> Iterator[str]:
    """Yield the command lines in calls such as `system("x")` of a program text."""
    for match in _CALL.finditer(text):
        yield " ".join(_unquoted(quoted) for quoted in _QUOTED.findall(match[1]))


def _recipe_lines(command: Command) -> Iterator[str]:
    """Yield the recipe lines of a makefile that make reads from its input."""
    texts = [word.text for word in command.words[1:]]
    if command.stdin is None or _MAKEFILE_INPUTS.isdisjoint(texts):
        return
    for line in command.stdin.text[:_MAX_WORD_LENGTH].splitlines():
        recipe = line if line[:1] == "\t" else line.partition(";")[2]
        if recipe.strip():
            yield recipe.strip().lstrip("@-+").replace("$$", "$")
        yield from _MAKE_SHELL.findall(line)


def destructive_text_reason(command: Command) -> str:
    """Return why a program text in a command's words is destructive; "" if it is not."""
    languages = shell_rules().languages
    name = base_name(command)
    if name in _AWKS and any(_AWK_PIPES.search(word.text) for word in command.words):
        return "runs what another command prints"
    if name in _MAKES and command.piped and command.stdin is None:
        words = [word.text for word in command.words]
        return "" if _MAKEFILE_INPUTS.isdisjoint(words) else "runs what another command prints"
    if name not in languages.databases and name not in languages.inline:
        return ""
    if name in languages.databases:
        program_texts = [word.text[:_MAX_WORD_LENGTH] for word in command.words[1:]]
        program_texts += [command.stdin.text[:_MAX_WORD_LENGTH]] if command.stdin else []
    else:
        program_texts = list(_inline_programs(command))
    for row in languages.destructive_programs:
        if row.databases == (name in languages.databases) and any(
            re.search(row.text, program) for program in program_texts
        ):
            return row.why
    return ""


def _inline_programs(command: Command) -> Iterator[str]:
    """Yield the program texts of an interpreter: `python -c x`, or its input: `python <<< x`."""
    options = shell_rules().languages.inline.get(base_name(command), ())
    words = [word.text[:_MAX_WORD_LENGTH] for word in command.words[1:]]
    for option, word in pairwise(words):
        if option in options or (
            option[:1] == "-" and any(option_matches(option, each) for each in options)
        ):
            yield word
    if command.stdin is not None and all(word[:1] == "-" for word in words):
        yield command.stdin.text[:_MAX_WORD_LENGTH]


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def variable_reason(assignments: Sequence[Assignment]) -> str:
    """Return why variables are destructive: programs run, or load, what they name; or ""."""
    patterns = shell_rules().languages.program_variables
    for assignment in assignments:
        for name, value in patterns.items():
            if re.fullmatch(name, assignment.name) and re.search(value, assignment.value.text):
                return f"sets {assignment.name}, which makes programs run something else"
    return ""


def output_paths_in_texts(command: Command) -> Iterator[str]:
    """Yield the files that a program of awk or a script of sed writes."""
    name = base_name(command)
    pattern = _AWK_WRITES if name in _AWKS else _SED_WRITES
    if name in _AWKS or name in _SEDS:
        for word in command.words[1:]:
            for match in pattern.finditer(word.text[:_MAX_WORD_LENGTH]):
                yield match[1] or match[match.lastindex or 1]


def sed_files(command: Command) -> Iterator[str]:
    """Yield the files that the scripts of a sed command may read or write."""
    if base_name(command) in _SEDS:
        for word in command.words[1:]:
            yield from _SED_FILES.findall(word.text[:_MAX_WORD_LENGTH])


def _container_commands(words: Sequence[str]) -> Iterator[str]:
    flags = shell_rules().languages.container_flags
    verb = ""
    program: list[str] = []
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word[:1] == "-" and len(word) > 1:
            if word == "--entrypoint" and at + 1 < len(words):
                program = [words[at + 1]]
            elif word.startswith("--entrypoint="):
                program = [word.partition("=")[2]]
            skip = word not in flags and _TAKES_VALUE.fullmatch(word) is not None
        elif not verb and word in _GROUPS:
            pass
        elif not verb and word not in _CONTAINER_VERBS:
            return
        elif verb:  # after the image or the container comes the program to run
            yield shlex.join([*program, *words[at + 1 :]])
            return
        else:
            verb = word


def option_programs(command: Command) -> list[str]:
    """Return the values of options by which `command` starts a program, with that program."""
    name = base_name(command)
    options = shell_rules().languages.own_command_options.get(name, ())
    previous, texts = "", []
    for word in command.words[1:]:
        texts += _option_values(previous, word.text, options)
        previous = word.text
    return texts


def command_values(command: Command, *, include_single_words: bool = False) -> list[str]:
    """Return texts in the words of `command` that it, or a program it starts, may run.

    These are the values of variables set for the command, values of options that take a command,
    and settings after `-c` and similar options. It is unknown which of them run, so they can only
    be used to refuse a command. Parts that are not certain are left out, and so are single words
    unless `include_single_words` is true.
    """
    if not command.words:
        return []
    texts = [each.value.text for each in command.assignments if each.value.static]
    name, *words = command.words
    program_options = shell_rules().languages.own_command_options.get(
        name.text.rpartition("/")[2], ()
    )
    previous = Word("")
    for word in words:
        if word.static and (program_options or "-" in {word.text[:1], previous.text[:1]}):
            texts += _option_texts(previous.text, word.text, program_options)
        previous = word
    return [
        text.lstrip("!|:")
        for text in texts
        if any(each.isspace() for each in text.strip()) or (include_single_words and text.strip())
    ]


def _option_texts(previous: str, text: str, program_options: Sequence[str]) -> list[str]:
    """Return the parts of `text` that may be a command line; `previous` is the word before it."""
    languages = shell_rules().languages
    settings = [text] if previous in languages.setting_options else []
    settings += [text[2:] for option in languages.setting_options if text.startswith(option)]
    texts = _option_values(previous, text, program_options)
    for setting in settings:
        key, _, value = setting.partition("=")
        texts += [] if any(map(str.isspace, key)) else [value]
    # Options of tar have the form `exec=…`, those of bind `"\\C-a": …`.
    return [
        *texts,
        *(candidate.partition("=")[2] for candidate in texts if "=" in candidate),
        *(candidate.rpartition('":')[2] for candidate in texts if candidate[:1] == '"'),
    ]


def _option_values(previous: str, text: str, program_options: Sequence[str]) -> list[str]:
    """Return the values of the options that take a command; `previous` is the word before."""
    common = option_set(shell_rules().languages.command_options)
    own = option_set(tuple(program_options))
    texts = [text] if common.matches(previous) or own.matches(previous) else []
    texts += [
        text[2:] for option in program_options if len(option) == 2 and text.startswith(option)
    ]
    if text.startswith("--") and (common.matches(text) or own.matches(text)):
        texts.append(text.partition("=")[2])
    return texts + [
        text[len(candidate) + 1 :]
        for candidate in program_options
        if text.startswith(f"{candidate}=")
    ]
