"""Decide whether a command only reads, and only from the session's folders."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache

from acp_agent.permissions.arguments import Arguments, parse_arguments
from acp_agent.permissions.git_reads import parse_git_subcommand, runs_no_program
from acp_agent.permissions.listed_files import known_path
from acp_agent.permissions.paths import CommandContext, is_below, matches_are_plain, stays_inside
from acp_agent.permissions.printing_programs import awk_only_prints, sed_only_prints
from acp_agent.permissions.refused_commands import expand_tar_letters
from acp_agent.permissions.rules import Reader, read_only_rules
from acp_agent.permissions.shell.syntax import Assignment, Command, Redirect
from acp_agent.permissions.shell.words import LISTED, UNKNOWN, Word, decode_ansi_c
from acp_agent.workspace.environment import NO_FETCH, QUIET

_TEXT_TESTS = frozenset({"-n", "-z", "=", "==", "!=", "!"})
_PRINTABLE = frozenset({"output", "revision", "folder"})
_OWN_NAME = re.compile(r"[A-Za-z]\w*(?<!_proxy)", re.ASCII)
_SET = {**QUIET, **NO_FETCH, "GIT_OPTIONAL_LOCKS": "0"}  # as for each command that only reads
_LISTING_WORDS = frozenset({"-l", "--list", "list"})
_COMPARISONS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})

_FORMAT = re.compile(r"(?s)(?:[^%]|%%|%[-+ 0#']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?[diouxXfFeEgGcsbq])*")


def is_read_only(command: Command, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether a command that runs no other certainly only reads, in any of `folders`."""
    if not has_harmless_context(command, context, folders) or not command.words:
        return False
    program, *arguments = command.words
    if not is_installed(program, context, folders):
        return False
    name = program.text.rpartition("/")[2]
    words = [resolve_word(word, context, folders) for word in arguments]
    if name in {"test", "["}:
        words = [
            Word(w.text) if w.pattern and v.origin in LISTED else w
            for v, w in zip(arguments, words, strict=True)
        ]
    if name == "git":
        words = [Word(w.text) if w.origin == "revision" and not w.pattern else w for w in words]
    if any(not word.static for word in words):
        return _only_prints(name, words, context, folders)
    rules = read_only_rules()
    texts = [word.text for word in words]
    if len(words) == 1 and words[0].fixed and texts[0] in rules.versions.get(name, ()):
        return True
    if name == "git":
        return _git_reads(words, context, folders)
    if name == "command":
        return len(texts) == 2 and texts[0] in {"-v", "-V"}
    if " " in name:
        return False
    words = list(expand_tar_letters(name, words))
    text = command.stdin.text if command.stdin else ""
    return any(
        reader is not None
        and (not reader.input or re.fullmatch(reader.input, text))
        and _reads(reader, words[count:], context, folders)
        for count in range(3)
        for reader in [rules.commands.get(" ".join([name, *texts[:count]]))]
    )


def sets_own_variables(command: Command, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether assignments set only variables with no meaning to the shell or a program."""
    reads = all(_is_harmless_redirect(redirect, context, folders) for redirect in command.redirects)
    return reads and all(
        is_own_variable(assignment.name)
        and (assignment.value.static or assignment.value.origin != "")
        for assignment in command.assignments
    )


def is_own_variable(name: str) -> bool:
    """Return whether a name has no meaning to any shell and is not in the environment."""
    return (
        _OWN_NAME.fullmatch(name) is not None
        and not read_only_rules().is_special_variable(name)
        and name not in os.environ
        and name not in QUIET
    )


def resolve_word(word: Word, context: CommandContext, folders: Sequence[str]) -> Word:
    """Return a word as certain if the line itself determines its parts; else unchanged."""
    if word.static or UNKNOWN in word.text.replace(UNKNOWN, "", word.origin == "pipe"):
        return word
    if word.origin == "exact":
        return Word(word.text, pattern=word.pattern)
    if word.origin in LISTED:
        return known_path(word, context, folders) or word
    if word.origin == "folder" and word.text.startswith(context.cwd):
        relative = word.text.removeprefix(context.cwd)
        return Word(f".{relative}", pattern=word.pattern) if relative[:1] in {"", "/"} else word
    if word.origin == "pipe" and word.text == UNKNOWN:
        return Word("/dev/null")  # reading a pipe is as harmless as reading /dev/null
    plain = word.origin == "split" and matches_are_plain(word, context, folders)
    return Word(word.text, pattern=True) if plain or word.origin == "match" else word


def _only_prints(
    name: str, words: Sequence[Word], context: CommandContext, folders: Sequence[str]
) -> bool:
    """Return whether a command only prints or compares the output of commands of the line."""
    start = 1 if name == "printf" else 0
    if any(not word.static and word.origin not in _PRINTABLE for word in words):
        return False
    if name in {"test", "["}:
        operators = {word.text for word in words[:-1] if word.text[:1] in {"-", "=", "!"}}
        return operators <= _TEXT_TESTS and all(word.fixed or not word.static for word in words)
    reader = read_only_rules().commands.get(name)
    if reader is None or reader.operands not in {"words", "format"} or name == "expr":
        return False
    if not all(word.static for word in words[:start]):
        return False
    return _reads(reader, [word for word in words if word.static], context, folders)


def is_installed(program: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether a command's first word names a program installed outside the project.

    The search path may lead to a program of the project (an active .venv, node_modules/.bin, "."),
    or to a shim, which runs what a file of the project names (`path:` in .tool-versions). A program
    that is not found is a builtin of the shell, or fails.
    """
    rules = read_only_rules()
    folder, _, name = program.text.rpartition("/")
    if not program.fixed or not name.isprintable() or not name:
        return False
    if folder:
        return folder in rules.program_folders
    if name in context.installed:
        return context.installed[name]
    entries = _path_entries(os.environ.get("PATH", os.defpath))
    if any(entry[:1] != "/" for entry in entries):
        return _is_outside_project(name, entries, context, folders)
    context.installed[name] = _is_outside_project(name, entries, context, folders[:1])
    return context.installed[name]


@lru_cache(maxsize=1)
def _path_entries(path: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path.split(os.pathsep)))


def _is_outside_project(
    name: str, entries: Sequence[str], context: CommandContext, folders: Sequence[str]
) -> bool:
    """Return whether the first program of this name on the search path is outside the project."""
    for folder in folders:
        for entry in entries:
            path = f"{entry}/{name}" if entry[:1] == "/" else os.path.join(folder, entry, name)  # noqa: PTH118 - text that need not be a path
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                resolved = os.path.realpath(path)
                if (
                    is_below(os.path.normpath(path), context.roots)
                    or is_below(resolved, context.roots)
                    or read_only_rules().shim_folder in {*path.split("/"), *resolved.split("/")}
                ):
                    return False
                break
    return True


def has_harmless_context(command: Command, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether no redirection writes a file and no variable changes the command's meaning."""
    return all(
        _is_harmless_redirect(redirect, context, folders) for redirect in command.redirects
    ) and all(
        is_harmless_assignment(assignment) or _splits_nothing(assignment, command)
        for assignment in command.assignments
    )


def _splits_nothing(assignment: Assignment, command: Command) -> bool:
    """Return whether an assignment is that of `IFS= read`, which reads whole lines."""
    is_read = bool(command.words) and command.words[0].text == "read"
    value = assignment.value
    return is_read and assignment.name == "IFS" and value.fixed and not value.text


def is_harmless_assignment(assignment: Assignment) -> bool:
    """Return whether a variable changes no command's meaning."""
    name, value = assignment.name, assignment.value
    return value.fixed and (name in read_only_rules().variables or _SET.get(name) == value.text)


def _is_harmless_redirect(
    redirect: Redirect, context: CommandContext, folders: Sequence[str]
) -> bool:
    target = resolve_word(redirect.target, context, folders)
    if redirect.operator == "<" and target.static:
        return _may_be_read(target, context, folders)
    if not target.fixed:
        return False
    if redirect.operator in {">&", "<&"} and target.text in {"0", "1", "2", "-"}:
        return True
    return target.text in read_only_rules().harmless_redirects


def _reads(
    reader: Reader, words: Sequence[Word], context: CommandContext, folders: Sequence[str]
) -> bool:
    if reader.operands == "words":
        return all(stays_inside(word, context, folders) for word in words if word.pattern)
    if reader.operands == "test":
        return _is_plain_test(words, context, folders)
    arguments = parse_arguments(words, reader, patterns=True)
    if arguments is None or not _is_allowed(reader, arguments, context, folders):
        return False
    paths = list(arguments.operands)
    if reader.operands in {"public", "variables"}:
        public = read_only_rules().public_variables
        return bool(paths) and all(
            word.fixed
            and (word.text in public if reader.operands == "public" else is_own_variable(word.text))
            for word in paths
        )
    limited = reader.max_operands is not None and not arguments.has(*reader.listing)
    if limited and (len(paths) > (reader.max_operands or 0) or any(word.pattern for word in paths)):
        return False
    takes_pattern = reader.operands in {"awk", "pattern", "script"}
    if takes_pattern and not _takes_pattern(reader, arguments, paths):
        return False
    if reader.operands in {"text", "format"}:
        paths = [word for word in paths if word.pattern]
        if not _is_text(reader, arguments.operands):
            return False
    else:
        paths += arguments.ambiguous
    if reader.operands == "files" and any(_may_be_folder(word, folders) for word in paths):
        return False
    return all(_may_be_read(word, context, folders) for word in (*paths, *arguments.paths))


def _may_be_read(word: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether a path is in the session's folders or is a public file about the machine."""
    public = word.fixed and word.text in read_only_rules().public_files
    return public or stays_inside(word, context, folders)


def _has_form(word: Word, form: str) -> bool:
    """Return whether an operand has the form; a pattern must not begin with a wildcard."""
    return word.text[:1] not in "*?[" * word.pattern and bool(re.fullmatch(form, word.text))


def _is_allowed(
    reader: Reader, arguments: Arguments, context: CommandContext, folders: Sequence[str]
) -> bool:
    """Return whether options, their values and operands have the form that the table requires."""
    if any(name in os.environ for name in reader.unset_variables):
        return False
    if len(arguments.operands) < reader.min_operands:
        return False
    if reader.requires and not arguments.has(*reader.requires):
        return False
    if reader.existing and not all(_exists(word, folders) for word in arguments.operands):
        return False
    if reader.operand_form and not all(
        _has_form(word, reader.operand_form) for word in arguments.operands
    ):
        return False
    if not all(is_installed(Word(name), context, folders) for name in reader.started_programs):
        return False
    return all(
        option.value.fixed and re.fullmatch(reader.value_forms[option.name], option.value.text)
        for option in arguments.options
        if option.value is not None and option.name in reader.value_forms
    )


def _exists(word: Word, folders: Sequence[str]) -> bool:
    """Return whether a word is the path of a file or folder from each of `folders`."""
    return word.fixed and all(os.path.exists(os.path.join(f, word.text)) for f in folders)  # noqa: PTH118 - text that need not be a path


def _takes_pattern(reader: Reader, arguments: Arguments, paths: list[Word]) -> bool:
    """Return whether the pattern or script is certain and harmless; removes it from `paths`."""
    names = reader.pattern_options
    patterns = [option.value for option in arguments.options if option.name in names]
    if not patterns and not paths:
        return False
    if not patterns and paths[0].text in reader.pattern_words:
        paths.pop(0)
    pattern_words = [word for word in (patterns or paths[:1]) if word is not None]
    if paths and not patterns and not reader.pattern_is_path:
        paths.pop(0)
    texts = [word.text for word in pattern_words]
    if not all(word.fixed for word in pattern_words):
        return False
    if reader.operands == "awk":
        return all(map(awk_only_prints, texts))
    if reader.operands == "script":
        return all(map(sed_only_prints, texts))
    if reader.forbidden and "-" in texts:
        return False  # jq takes the next word as its program
    return not any(text in pattern for pattern in texts for text in reader.forbidden)


def _is_text(reader: Reader, words: Sequence[Word]) -> bool:
    if reader.operands == "format" and not _is_format(words):
        return False
    return all(word.text.startswith(reader.operand_start) for word in words)


def _is_format(words: Sequence[Word]) -> bool:
    """Return whether `printf` only prints with this format; %n sets a variable."""
    if not words or words[0].pattern:
        return False
    text = words[0].text
    decoded = decode_ansi_c(text, nul_ends=False)
    return decoded.count("%") == text.count("%") and bool(_FORMAT.fullmatch(text))


def _may_be_folder(word: Word, folders: Sequence[str]) -> bool:
    paths = (os.path.join(folder, word.text) for folder in folders)  # noqa: PTH118 - text that need not be a path
    return word.pattern or any(map(os.path.isdir, paths))


def _is_plain_test(words: Sequence[Word], context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether the shell evaluates no text in a `test` or `[` command (-v, -R, sums)."""
    texts = [word.text for word in words]
    if {"-v", "-R"} & set(texts) or any(word.pattern for word in words):
        return False
    if _COMPARISONS & set(texts):
        numbers = [text for text in texts if text not in _COMPARISONS]
        return all(text.lstrip("-").isdigit() for text in numbers)
    return all(
        stays_inside(word, context, folders) for word in words if not word.text.startswith("-")
    )


def _git_reads(words: Sequence[Word], context: CommandContext, folders: Sequence[str]) -> bool:
    parsed = parse_git_subcommand(words, context, folders)
    if parsed is None:
        return False
    command_words, git_folders = parsed
    commands = read_only_rules().commands
    texts = [word.text for word in command_words]
    if texts[:1] == ["config"] and not _LISTING_WORDS.isdisjoint(texts):
        name_form = commands["git config"].operand_form
        if "--local" not in texts or any(  # the user's own settings may contain tokens
            not re.fullmatch(name_form, name)
            for folder in git_folders
            for repository in context.repositories.used_in(os.path.realpath(folder)) or ()
            for name, _ in repository.settings
        ):
            return False
    for length in (2, 1):
        reader = commands.get("git " + " ".join(texts[:length]))
        if reader is not None and len(texts) >= length:
            return _reads(reader, command_words[length:], context, git_folders) and all(
                runs_no_program(folder, context) for folder in git_folders
            )
    return False
