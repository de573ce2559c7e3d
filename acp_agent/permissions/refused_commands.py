"""Commands refused in every mode: those that destroy a machine, a disk or a home folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from acp_agent.permissions.guarded_files import is_program_file, normalize_path
from acp_agent.permissions.paths import CommandContext, is_below, is_disk, is_vital, possible_paths
from acp_agent.permissions.rules import has_option, operands, option_matches, shell_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN, Word
from acp_agent.permissions.wrapped_commands import base_name

_DISK = "writes to a disk or to the machine's memory"
_CHANGES_PROGRAM_FILES = "changes acp-agent's own configuration or data"
_SYSTEM_FILE = "overwrites a file that the system needs"


def refusal_reason(command: Command, context: CommandContext, folders: Sequence[str]) -> str:
    """Return why `command`, run in any of `folders`, is never run; "" if it is not refused."""
    for redirect in command.redirects:
        if redirect.writes:
            if _leads_to_program_file(redirect.target, context, folders):
                return _CHANGES_PROGRAM_FILES
            reason = _write_refusal(redirect.target, folders)
            if reason:
                return reason
    if not command.words:
        return ""
    rules = shell_rules().refused
    name = base_name(command)
    words = command.words[1:]
    texts = [word.text for word in words]
    if name in rules.programs or name.startswith(rules.program_prefixes):
        return "switches the machine off or makes a file system"
    if set(operands(texts, ())[:1]) & rules.power.get(name, frozenset()):
        return "switches the machine off"
    if name == "kill" and _kills_all(texts):
        return "ends every process of the user"
    if _changes_program_files(command, context, folders):
        return _CHANGES_PROGRAM_FILES
    return _delete_refusal(command, context, folders) or _program_write_refusal(
        name, words, folders
    )


def _kills_all(texts: list[str]) -> bool:
    """Return whether `kill` ends all processes: `kill -9 -1`; a lone `-1` is a signal number."""
    return texts[-1:] == ["-1"] and len(texts) > 1


def _changes_program_files(
    command: Command, context: CommandContext, folders: Sequence[str]
) -> bool:
    """Return whether a command changes, moves or deletes one of our files or a folder above one."""
    if not context.program_files:
        return False
    rules = shell_rules()
    name, words = base_name(command), command.words[1:]
    targets = output_paths(name, words)
    texts = [word.text for word in words]
    editing = name in {"sed", "perl"} and has_option(texts, ("-i", "--in-place"))
    if editing or name in {*rules.refused.deleters, *rules.refused.disk_writers, "rmdir"}:
        targets += [Word(word.text.removeprefix("of=")) for word in words]
    removed = [word for word in words if has_option(texts, rules.refused.deleters.get(name, ()))]
    removed = list(words) if name in {"mv", "trash", "rmtree"} else removed
    return any(_leads_to_program_file(word, context, folders) for word in targets) or any(
        is_below(normalize_path(program_file), [normalize_path(path)])
        for word in removed
        if not word.text.startswith("-")
        for folder in folders
        for path in possible_paths(word.text, folder)
        for program_file in context.program_files
    )


def _leads_to_program_file(word: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    return any(
        is_program_file(candidate, context.program_files, context.project)
        for folder in folders
        for path in possible_paths(word.text, folder)
        for candidate in (path, path if {UNKNOWN, NONEMPTY} & {*path} else os.path.realpath(path))
    )


def _delete_refusal(command: Command, context: CommandContext, folders: Sequence[str]) -> str:
    rules = shell_rules().refused
    name, words = base_name(command), command.words[1:]
    texts = [word.text for word in words]
    # A program that is not yet known may be `rm`.
    unknown = UNKNOWN in name or NONEMPTY in name or command.words[0].pattern
    options = rules.deleters["rm"] if unknown else rules.deleters.get(name)
    if name in {"find", "gfind"}:
        return _find_delete_refusal(words, context, folders)
    if options is None or not (options == ("",) or has_option(texts, options)):
        return ""
    targets = [word for word in words if not word.text.startswith("-")]
    if name in {"mv", "rsync"}:
        targets = targets[:-1] if name == "mv" else targets[-1:]
    for word in targets:
        if is_vital(word, context, folders):
            return f"takes away {_display_word(word)}, which the system or all your work is in"
    return ""


def _find_delete_refusal(
    words: Sequence[Word], context: CommandContext, folders: Sequence[str]
) -> str:
    texts = [word.text for word in words]
    if "-delete" not in texts or {"-name", "-iname", "-path", "-ipath", "-regex"} & set(texts):
        return ""
    first = next((at for at, text in enumerate(texts) if text[:1] in {"-", "(", "!"}), 0)
    for word in words[:first] or [Word(".")]:
        if is_vital(word, context, folders):
            return f"takes away {_display_word(word)}, which the system or all your work is in"
    return ""


def _program_write_refusal(name: str, words: Sequence[Word], folders: Sequence[str]) -> str:
    rules = shell_rules()
    texts = [word.text for word in words]
    if name in rules.refused.disk_writers:
        if name in {"dd", "dcfldd", "dc3dd"}:
            words = [Word(word.text[3:]) for word in words if word.text.startswith("of=")]
        elif has_option(texts, rules.refused.disk_readers):
            return ""
        return _first_reason(_write_refusal(word, folders) for word in words)
    if name in rules.writers.all or name in {"chmod", "chown", "sed", "perl"}:
        if name in {"sed", "perl"} and not has_option(texts, ("-i", "--in-place")):
            return ""
        return _first_reason(_write_refusal(word, folders) for word in words)
    if name in rules.writers.last or name == "mv":
        return _first_reason(_write_refusal(word, folders) for word in words[-1:])
    return ""


def _write_refusal(word: Word, folders: Sequence[str]) -> str:
    for folder in folders:
        for path in possible_paths(word.text, folder):
            if is_disk(path):
                return _DISK
            if any(fnmatchcase(file, path) for file in shell_rules().refused.files):
                return _SYSTEM_FILE
    return ""


def _first_reason(reasons: Iterable[str]) -> str:
    return next((reason for reason in reasons if reason), "")


def _display_word(word: Word) -> str:
    return word.text.replace(UNKNOWN, "").replace(NONEMPTY, "…") or "/"


def is_fork_bomb(commands: Sequence[Command], functions: frozenset[str]) -> bool:
    """Return whether a function of the line starts several copies of itself."""
    calls: dict[str, set[str]] = {name: set() for name in functions}
    repeated: set[str] = set()
    edges: set[tuple[str, str]] = set()
    for command in commands:
        name = base_name(command)
        if command.function in calls and name in functions:
            edge = (command.function, name)
            if command.concurrent or edge in edges:
                repeated.add(command.function)
            edges.add(edge)
            calls[command.function].add(name)
    return any(_reaches(name, name, calls, set()) for name in repeated)


def _reaches(start: str, goal: str, calls: dict[str, set[str]], visited: set[str]) -> bool:
    for name in calls[start] - visited:
        visited.add(name)
        if name == goal or _reaches(name, goal, calls, visited):
            return True
    return False


_TAR = frozenset({"tar", "gtar", "bsdtar"})
_TAR_VALUES = frozenset("bCfFgHIKLNTVX")  # letters that each take a word, in their order
_NEW_BRANCH = ("-b", "-B", "-t", "--track", "--orphan", "-d", "--detach")


def output_paths(name: str, words: Sequence[Word]) -> list[Word]:
    """Return the paths that a program writes to, as far as its name and options show."""
    writers = shell_rules().writers
    words = expand_tar_letters(name, words)
    paths = [word for word in words if not word.text.startswith("-")]
    options = writers.output_options.get(name, ())
    outputs: list[Word] = []
    if name in writers.last:
        options = (*options, *writers.target_options)
        outputs += paths[-1:]
    elif name in writers.all:
        outputs += paths
    for word, following in zip(words, [*words[1:], Word(".")], strict=False):
        for option in options:
            text = word.text
            if text == option:
                outputs.append(following)
            elif not option_matches(text, option):
                continue
            elif len(option) > 2:
                outputs.append(
                    Word(text.partition("=")[2], word.static) if "=" in text else following
                )
            else:  # in a cluster, the text after the letter is its value
                attached = text[1:].partition(option[1])[2]
                outputs.append(Word(attached, word.static) if attached else following)
    return outputs


def expand_tar_letters(name: str, words: Sequence[Word]) -> Sequence[Word]:
    """Return the words of `tar xfC a /opt` as `-x -f a -C /opt`; other words unchanged."""
    if name not in _TAR or not words or words[0].text.startswith("-"):
        return words
    letters, *remaining = words
    expanded: list[Word] = []
    for letter in letters.text:
        expanded.append(Word(f"-{letter}", letters.static))
        if letter in _TAR_VALUES and remaining:
            expanded.append(remaining.pop(0))
    return [*expanded, *remaining]


def discards_changes(texts: Sequence[str], folders: Sequence[str]) -> bool:
    """Return whether a git command checks out files over changes: `git checkout main x`.

    A single name is a file if it exists in any of `folders`; otherwise it is a branch.
    """
    subcommand, *names = operands(texts, shell_rules().globals["git"]) or [""]
    if subcommand != "checkout" or has_option(texts, _NEW_BRANCH):
        return False
    paths = (os.path.join(folder, name) for folder in folders for name in names)  # noqa: PTH118 - text that need not be a path
    return len(names) > 1 or any(map(os.path.lexists, paths))
