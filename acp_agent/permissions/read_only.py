"""Whether a command changes nothing and shows nothing from outside the session's folders."""

from __future__ import annotations

import os
from collections.abc import Sequence

from acp_agent.permissions.git_reads import runs_no_program, subcommand
from acp_agent.permissions.paths import Place, stays_inside
from acp_agent.permissions.rules import Reader, has_option, operands, read_only_rules
from acp_agent.permissions.shell_syntax import Assignment, Command, Redirect
from acp_agent.permissions.words import Word

_COMPARISONS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


def is_read_only(command: Command, place: Place, folders: Sequence[str]) -> bool:
    """Whether a command that runs no other certainly only reads, in any of `folders`."""
    if not is_quiet(command, place, folders) or not command.words:
        return False
    first, *words = command.words
    if any(not word.static for word in command.words) or first.pattern:
        return False
    folder, _, name = first.text.rpartition("/")
    rules = read_only_rules()
    if folder and folder not in rules.program_folders:
        return False
    texts = [word.text for word in words]
    if len(texts) == 1 and texts[0] in rules.versions:
        return name in rules.versioned
    if texts == ["version"] and name in rules.version_commands:
        return True
    if name == "git":
        return _git_reads(words, place, folders)
    if name == "command":
        return len(texts) == 2 and texts[0] in {"-v", "-V"}
    reader = rules.commands.get(name)
    return reader is not None and _reads(reader, words, place, folders)


def is_quiet(command: Command, place: Place, folders: Sequence[str]) -> bool:
    """Whether nothing is redirected to a file, and no variable set that changes a meaning."""
    return all(_harmless(redirect, place, folders) for redirect in command.redirects) and all(
        is_harmless(assignment) for assignment in command.assignments
    )


def is_harmless(assignment: Assignment) -> bool:
    """Whether a variable changes no command's meaning."""
    return assignment.value.fixed and assignment.name in read_only_rules().variables


def _harmless(redirect: Redirect, place: Place, folders: Sequence[str]) -> bool:
    target = redirect.target
    if not target.fixed:
        return False
    if redirect.operator in {">&", "<&"} and target.text in {"0", "1", "2", "-"}:
        return True
    if target.text in read_only_rules().harmless_redirects:
        return True
    return redirect.operator == "<" and stays_inside(target, place, folders)


def _reads(reader: Reader, words: Sequence[Word], place: Place, folders: Sequence[str]) -> bool:
    texts = [word.text for word in words]
    if not _options_allowed(reader, texts):
        return False
    if reader.test:
        return _tests(words, place, folders)
    if reader.text:
        starts = operands(texts, reader.values) if reader.operand_start else []
        return all(text.startswith(reader.operand_start) for text in starts) and all(
            stays_inside(word, place, folders) for word in words if word.pattern
        )
    rest = list(_paths(reader, words))
    if reader.pattern and not has_option(texts, reader.pattern_options):
        if not rest or rest[0].pattern:
            return False
        pattern = rest.pop(0).text
        if any(text in pattern for text in reader.forbidden):
            return False
        if reader.script and not _prints_lines(pattern, texts):
            return False
    if reader.operands is not None and len(rest) > reader.operands:
        return False
    if reader.files and any(_may_be_folder(word, folders) for word in rest):
        return False
    return all(stays_inside(word, place, folders) for word in rest)


def _may_be_folder(word: Word, folders: Sequence[str]) -> bool:
    paths = (os.path.join(folder, word.text) for folder in folders)  # noqa: PTH118 - text that need not be a path
    return word.pattern or any(map(os.path.isdir, paths))


def _options_allowed(reader: Reader, texts: Sequence[str]) -> bool:
    known = (*reader.values, *reader.pairs)  # which no longer option is abbreviated to
    options = [text for text in texts if text.startswith("-") and text not in {"-", *known}]
    if reader.allow is not None:
        return all(option in reader.allow for option in options)
    if reader.long:  # options are words with one dash, as those of `find`
        return not set(options) & set(reader.deny)
    return not has_option(options, reader.deny)


def _paths(reader: Reader, words: Sequence[Word]) -> list[Word]:
    """All words that may be paths: operands, and what is attached to an option."""
    found: list[Word] = []
    skip = 0
    ended = False
    for word in words:
        text = word.text
        if word.pattern:
            skip = 0  # it may be several words
        if skip:
            skip -= 1
        elif ended or not text.startswith("-") or text == "-":
            if text != "-":
                found.append(word)
        elif text == "--":
            ended = True
        elif text in reader.values:
            skip = 1
        elif text in reader.pairs:
            skip = 2
        elif word.pattern:
            found.append(word)
        elif text.startswith("--"):
            value = text.partition("=")[2]
            if "/" in value or value.startswith(("~", "..")):
                found.append(Word(value))
        elif "/" in text or ".." in text:
            # Behind a cluster of letters: -f../x, -C/etc.
            found += [Word(text[at:]) for at in range(2, min(len(text), 12))]
    return found


def _prints_lines(script: str, options: Sequence[str]) -> bool:
    """Whether a script of `sed -n` only prints lines by number, or ends: `1,20p`, `$p`, `5q`."""
    if "-n" not in options and "--quiet" not in options and "--silent" not in options:
        return False
    for statement in script.split(";"):
        body = statement.strip()
        if not body or body[-1] not in "pq" or set(body[:-1]) - set("0123456789,$+~ "):
            return False
    return True


def _tests(words: Sequence[Word], place: Place, folders: Sequence[str]) -> bool:
    """`test` and `[` without what makes the shell evaluate a text (-v, -R, sums)."""
    texts = [word.text for word in words]
    if {"-v", "-R"} & set(texts) or any(word.pattern for word in words):
        return False
    if _COMPARISONS & set(texts):
        numbers = [text for text in texts if text not in _COMPARISONS]
        return all(text.lstrip("-").isdigit() for text in numbers)
    return all(
        stays_inside(word, place, folders)
        for word in words
        if "/" in word.text and not word.text.startswith("-")
    )


def _git_reads(words: Sequence[Word], place: Place, folders: Sequence[str]) -> bool:
    found = subcommand(words, place, folders)
    if found is None:
        return False
    rest, where = found
    commands = read_only_rules().commands
    texts = [word.text for word in rest]
    for length in (2, 1):
        reader = commands.get("git " + " ".join(texts[:length]))
        if reader is not None and len(texts) >= length:
            return _reads(reader, rest[length:], place, where) and all(
                runs_no_program(folder, place) for folder in where
            )
    return False
