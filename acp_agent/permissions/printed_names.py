"""Determine what a command prints, from the command line alone: names of files, hashes, numbers."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from msgspec import Struct

from acp_agent.permissions.arguments import Arguments, parse_arguments
from acp_agent.permissions.rules import read_only_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import Word

_NUL_OPTIONS = frozenset({"-0", "-r0", "-0r", "--null"})
_REPLACE_OPTION = re.compile(r"-[0rtx]*I(.*)")
_DELIMITER_OPTION = re.compile(r"-[0rtx]*d(.*)|--delimiter(?:=(.*))?")
_PLAIN_TEXT = re.compile(r"[\w./:=+, -]+", re.ASCII)  # without quotes and escapes
# What makes find print something else than regular files, or follow links.
_OTHER_OUTPUT = frozenset(
    {"-printf", "-fprintf", "-ls", "-fls", "-print", "-follow", "-L", "-H", "-exec", "-execdir"}
    | {"-o", "-or", ",", "!", "-not", "-ok", "-okdir", "-files0-from"}
)
# Commands that pass on some of their lines: their options, and the number of their operands.
_SELECTORS: dict[str, tuple[str, int]] = {
    "grep": ("-[vEFiwxP]+", 1),
    "head": ("-n?[0-9]+", 0),
    "tail": ("-n?[0-9]+", 0),
    "sort": ("-[ru]+", 0),
    "uniq": ("-[du]", 0),
}
_MANY = 5  # more than any program with a limited number of operands takes


class _Lister(Struct, frozen=True):
    """A command that prints names of files below its operands, one a line, and follows no link.

    `requires` are options of which one must be present, `other` those with which it prints more.
    The remaining options are those of its row in read_only_commands.toml. `pattern_or_folder` is
    true if the first operand may be a pattern or a folder.
    """

    requires: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    pattern_or_folder: bool = False


_GREP = _Lister(
    ("-l", "-L", "--files-with-matches", "--files-without-match"),
    ("-Z", "-z", "--null", "--null-data", "--label", "--color", "--colour"),
)
_FD = _Lister(
    other=("-0", "--print0", "-a", "--absolute-path", "-c", "--color"), pattern_or_folder=True
)
_LISTERS: dict[str, _Lister] = {
    "find": _Lister(other=("-ls", "-printf", "-print0")),
    "fd": _FD,
    "fdfind": _FD,
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "ls": _Lister(),
    "rg": _Lister(
        ("-l", "--files", "--files-with-matches", "--files-without-match"),
        (
            *("-0", "-c", "-p", "--color", "--colors", "--count", "--count-matches", "--debug"),
            *("--json", "--null", "--path-separator", "--pcre2-version", "--pretty", "--stats"),
            *("--trace", "--type-list", "--vimgrep"),
        ),
    ),
}
_TRACKED_LISTERS: dict[str, tuple[str, str]] = {  # options that may, and that must be present
    "ls-files": (r"--|-c|--cached|-m|--modified|-z", ""),
    "grep": (
        r"--|-[EFGPILilvw]+|-e|--files-with-matches|--name-only",
        r"-\w*l\w*|--files-with-matches|--name-only",
    ),
}


# Commands that print a number, or hashes of commits.
_NUMBERS = re.compile(
    r"wc -[clmw]|grep -c[EFivwx]* [^-]\S*(?: [\w./]+)?|git rev-list --count .*|nproc"
    r"|date \+%[sYmdHMSj]+"
)
_SELECTION = (
    r"(?: (?:-\d+|-n|-s|--no-patch|--all|--reverse|--no-merges|--merges|--first-parent|--follow"
    r"|--(?:since|until|after|before|author|grep|max-count|skip)=\S*|--|[^-]\S*))*"
)
_HASH_FORMAT = r" --(?:format|pretty)=(?:t?format:)?%[hH]"
_HASHES = re.compile(
    rf"git (?:log|show -s){_SELECTION}{_HASH_FORMAT}{_SELECTION}|git rev-list{_SELECTION}"
    r"|git merge-base [\w./@~^-]+ [\w./@~^-]+"
)
_RESOLVED = re.compile(r"git rev-parse(?: --(?:short|verify|quiet))* (?!-)([\w./@~^-]+)")


def appended_words(command: Command) -> tuple[Word, ...]:
    """Return the words that xargs appends, as far as they are known."""
    if names := piped_names(command):
        return names
    texts = ["…"] if command.stdin is None else command.stdin.text.split()
    return tuple(Word(text, static=False) for text in texts)


def piped_names(command: Command) -> tuple[Word, ...]:
    """Return words that stand for all that xargs reads from the pipe; empty if uncertain.

    `echo` passes its words. `find -type f -print0` passes regular files below its starting points,
    which stand for them: no link is followed, and with `-0` no name is split.
    """
    source = command.source
    if source is None or any(redirect.operator == "<" for redirect in command.redirects):
        return ()
    if not _only_discards(source) or _builds_names(command):
        return ()
    name, texts = source.words[0].text if source.words else "", [w.text for w in source.words[1:]]
    reads_nul = not _NUL_OPTIONS.isdisjoint(word.text for word in command.words)
    if (name == "echo" or texts[:1] == [r"%s\n"]) and all(word.fixed for word in source.words):
        text = " ".join(texts if name == "echo" else texts[1:])
        return tuple(map(Word, text.split())) if _PLAIN_TEXT.fullmatch(text) else ()
    listed = printed_names(source, separated=reads_nul)
    if listed:
        return listed
    if name != "find" or not reads_nul or texts[-1:] != ["-print0"]:
        return ()
    if ("-type", "f") not in pairwise(texts) or not _OTHER_OUTPUT.isdisjoint(texts):
        return ()
    if texts.count("-print0") > 1:
        return ()
    starts = takewhile(lambda word: word.text[:1] not in {"-", "(", "!"}, source.words[1:])
    return (tuple(starts) or (Word("."),)) * _MANY


def _builds_names(command: Command) -> bool:
    """Return whether xargs joins or splits the names that it reads: `xargs -I% cat folder/%`."""
    texts = [word.text for word in command.words]
    for option, following in pairwise([*texts, ""]):
        match = _REPLACE_OPTION.fullmatch(option)
        if match is not None:
            mark = match[1] or following
            return any(mark in text and text not in {mark, option} for text in texts)
        match = _DELIMITER_OPTION.fullmatch(option)
        if match is not None and (match[1] or match[2] or following) != r"\n":
            return True
    return False


def printed_names(command: Command, *, separated: bool = False) -> tuple[Word, ...]:
    """Return words that stand for all words that a command prints; empty if uncertain.

    They are names of tracked files or of files below a folder, hashes of commits, or one number,
    also if the command selects some of the lines of a pipe.

    Args:
        separated: whether the names are separated by NUL.
    """
    current: Command | None = command
    while current is not None and _selects_lines(current) and not separated:
        current = current.source
    if current is None or current.assignments or not current.words:
        return ()
    if not _only_discards(current) or not all(_is_known(word) for word in current.words):
        return ()
    text = str(current)
    if _HASHES.fullmatch(text) and not separated:
        return (Word("HEAD", static=False, origin="revision"),) * _MANY
    if match := _RESOLVED.fullmatch(text):  # the operand, where it is no revision
        return (Word(match[1], static=False, origin="revision"),)
    if current is command and _NUMBERS.fullmatch(text):
        return (Word("0", static=False, origin="exact"),)
    if current.words[0].text == "git":
        return _tracked_names([word.text for word in current.words[1:]], separated=separated)
    return () if separated else _names_below(current)


def _is_known(word: Word) -> bool:
    return word.static or word.origin == "exact"


def _only_discards(command: Command) -> bool:
    """Return whether a command's redirections at most discard some of its output."""
    return all(
        redirect.operator == "<" or (redirect.operator, redirect.target.text) == (">", "/dev/null")
        for redirect in command.redirects
    )


def _tracked_names(texts: list[str], *, separated: bool) -> tuple[Word, ...]:
    """Return words for the names that a git command prints, if all of them are tracked files."""
    allowed, required = _TRACKED_LISTERS.get(texts[0] if texts else "", ("", ""))
    options = [text for text in texts[1:] if text[:1] == "-"]
    if not allowed or not all(re.fullmatch(allowed, option) for option in options):
        return ()
    if separated != ("-z" in options):
        return ()
    if texts[0] == "grep":  # a further operand before `--` may be a revision
        before = list(takewhile(lambda text: text != "--", texts[1:]))
        operands = [text for text in before if text[:1] != "-"]
        if len(operands) != 1 or not any(re.fullmatch(required, option) for option in options):
            return ()
    return (Word("…", static=False, origin="tracked_nul" if separated else "tracked"),) * _MANY


def _names_below(command: Command) -> tuple[Word, ...]:
    """Return words for the names that a command prints of files below its operands."""
    name = command.words[0].text
    lister, reader = _LISTERS.get(name), read_only_rules().commands.get(name)
    if lister is None or reader is None:
        return ()
    if name == "ls":
        return _listed_here(command)
    words = [Word(word.text, pattern=word.pattern) for word in command.words[1:]]
    arguments = parse_arguments(words, reader, patterns=True)
    if arguments is None or arguments.has(*lister.other):
        return ()
    if lister.requires and not arguments.has(*lister.requires):
        return ()
    operands = [word for word in arguments.operands if word.text not in {"(", ")", "!"}]
    if lister.pattern_or_folder:
        operands.append(Word("."))
    elif reader.operands == "pattern" and not arguments.has(*reader.pattern_options):
        operands = operands[1:]
    if any(word.text == "-" for word in operands):
        return ()
    starts = dict.fromkeys(_folder_before_pattern(word) for word in operands or [Word(".")])
    ending = f"…{_file_name(arguments)}"
    names = tuple(Word(f"{start}/{ending}", static=False, origin="below") for start in starts)
    return names * _MANY


def _file_name(arguments: Arguments) -> str:
    """Return the pattern of find's only `-name`; "" if there are more, or other conditions."""
    patterns = [o.value.text for o in arguments.options if o.name == "-name" and o.value]
    is_only = len(patterns) == 1 and not arguments.has("-not", "-o", "-or")
    is_only = is_only and not {"!", "("} & {word.text for word in arguments.operands}
    return patterns[0] if is_only and re.fullmatch(r"[\w.*?-]+", patterns[0]) else ""


def _listed_here(command: Command) -> tuple[Word, ...]:
    """Return words for the names that `ls` prints: they are of files below the current folder."""
    for word in command.words[1:]:
        is_option = word.text[:1] == "-" and re.fullmatch(r"-[1drtS]+", word.text)
        is_inside = word.text[:1] not in {"-", "/", "~"} and ".." not in word.text
        if not is_option and not is_inside:
            return ()
    return (Word("./…", static=False, origin="below"),) * _MANY


def _folder_before_pattern(word: Word) -> str:
    """Return the path before the first wildcard of a word, which all matches lie below."""
    if not word.pattern:
        return word.text.rstrip("/")
    before = takewhile(lambda part: not set(part) & set("*?["), word.text.split("/"))
    return "/".join(before) or ("/" if word.text[:1] == "/" else ".")


def _selects_lines(command: Command) -> bool:
    """Return whether a command passes on some of the lines of its input, unchanged."""
    if not command.words or command.redirects or command.assignments or command.source is None:
        return False
    name, texts = command.words[0].text, [word.text for word in command.words[1:]]
    options, operand_count = _SELECTORS.get(name, (None, 0))
    if options is None or not all(word.fixed for word in command.words):
        return False
    operands = [text for text in texts if not re.fullmatch(options, text)]
    return len(operands) <= operand_count and not any(text[:1] == "-" for text in operands)
