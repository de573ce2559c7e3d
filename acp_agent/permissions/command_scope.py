"""Determine what an "always" for a command covers, using the tables of command_grants.toml."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.permissions.arguments import parse_arguments
from acp_agent.permissions.grant_tables import (
    GrantTable,
    NameMatch,
    find_name,
    grant_tables,
    launcher_words,
    program_name,
)
from acp_agent.permissions.paths import CommandContext, stays_inside
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import LITERAL, Piece, TooComplexError, Word, to_words

_MAX_BUTTON_LENGTH = 100  # longest command that a button shows in full
_BOUND_KINDS = frozenset({"ref", "remote", "target", "program"})
_PATH_KINDS = frozenset({"path", "selector", "folder", "package", "program"})


class Scope(Struct, frozen=True, kw_only=True):
    """What a grant for a command covers.

    `words` are the command's name with the arguments bound to it, or all of its words if `exact`.
    """

    words: tuple[str, ...]
    exact: bool = False


class Offer(Struct, frozen=True, kw_only=True):
    """What can be remembered about a command.

    Each scope of `allow` covers the command; the first is offered. `refuse` are the words that a
    "never" covers; empty if none is offered.
    """

    allow: tuple[Scope, ...] = ()
    refuse: tuple[str, ...] = ()


class _BoundArguments(Struct, frozen=True, kw_only=True):
    """The arguments of a command that become part of the grant."""

    operands: tuple[str, ...]
    options: tuple[str, ...]


def names_inner_command(command: Command) -> bool:
    """Return whether a command names the one it runs in its first words: `uv run pytest`."""
    return bool(launcher_words(command.words))


def offer_for_command(command: Command, context: CommandContext, folders: Sequence[str]) -> Offer:
    """Return what can be remembered about a command that runs in one of `folders`."""
    words = command.words
    if not words or not words[0].fixed or "=" in words[0].text or words[0].text[:1] in "-+":
        return Offer()
    if runs_in_other_folder(words[0].text, context, folders):
        return Offer()
    count, fetched = 0, False
    while head := launcher_words(words[count:]):
        count += len(head)
        if head in grant_tables().names.fetching_heads:
            fetched = fetched or not _is_installed(words[count].text, context, folders)
    if fetched:
        return Offer(refuse=_texts(words[: count + 1]))
    inner = words[count:]
    match = find_name(inner)
    if match is None:
        return _unlisted_offer(words, count, context, folders)
    name_words = _texts(words[: count + match.count])
    if match.kind != "table":
        return Offer(refuse=_subcommand(words, count) if match.kind == "installs" else ())
    if any("/" in text for text in name_words) and any(
        folder != context.roots[0] for folder in folders
    ):
        return Offer()  # its meaning depends on the folder: `cd x && source .venv/bin/activate`
    exact = _exact_scopes(words, context, folders) if _may_be_exact(match.name, inner) else ()
    table = grant_tables().tables[match.name]
    bound = _bind_arguments(table, inner[match.count :], context, folders)
    if bound is None or not _keeps_name(match, inner, bound.operands):
        installs = match.name in grant_tables().names.installs
        return Offer(allow=exact, refuse=_subcommand(words, count) if installs else name_words)
    matches_tool = Scope(words=(*name_words, *bound.operands, *bound.options))
    script = bound.operands[:1] if table.operands[:1] and "target" in table.operands[0] else ()
    return Offer(allow=(matches_tool, *exact), refuse=(*name_words, *script))


def _texts(words: Sequence[Word]) -> tuple[str, ...]:
    return tuple(word.text for word in words)


def runs_in_other_folder(program: str, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether a command may run in another repository, or a program of another folder.

    A clone inside the project has its own hooks and remotes, and `./run` differs between folders.
    """
    project = context.roots[0]
    other_folders = [folder for folder in folders if folder != project]
    if not other_folders or "/" in program:
        return bool(other_folders)
    repository = _repository(project)
    return repository is not None and any(
        _repository(folder) != repository for folder in other_folders
    )


def _repository(folder: str) -> Path | None:
    """Return the nearest folder at or above that git treats as a repository, bare or not."""
    path = Path(os.path.realpath(folder))
    for ancestor in (path, *path.parents):
        if os.path.lexists(ancestor / ".git"):
            return ancestor
        if os.path.lexists(ancestor / "HEAD") and any(
            os.path.lexists(ancestor / name) for name in ("refs", "objects", "commondir")
        ):
            return ancestor
    return None


def _is_installed(program: str, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether the project already has the program that `npx` and the like would fetch."""
    return "/" not in program and all(
        any(
            os.path.lexists(parent / "node_modules" / ".bin" / program)
            for parent in (Path(folder), *Path(folder).parents)
            if context.contains(str(parent))
        )
        for folder in folders
    )


def _keeps_name(match: NameMatch, words: Sequence[Word], operands: Sequence[str]) -> bool:
    """Return whether removing options leaves the name the same: `yarn -s add` is `yarn add`."""
    bare_match = find_name([*words[: match.count], *map(Word, operands)])
    return bare_match is not None and bare_match.name == match.name


# -- exact commands


def _may_be_exact(name: str, words: Sequence[Word]) -> bool:
    names = grant_tables().names
    if {name, name.partition(" ")[0]} & names.never:
        return False
    if name not in names.installs:
        return True
    # `yarn lint --fix` may be exact, but not a command in which a word installs something: `yarn
    # workspace x add y`.
    installing = {each.removeprefix(f"{name} ") for each in names.installs} | names.install_words
    texts = _texts(words[1:])
    return texts[:1] != () and texts[0][:1].isalnum() and not installing & set(texts)


def _unlisted_offer(
    words: Sequence[Word], head: int, context: CommandContext, folders: Sequence[str]
) -> Offer:
    """Return what can be remembered about a program that no table lists."""
    program, following, third = (*_texts(words[head : head + 3]), "", "")[:3]
    names = grant_tables().names
    script = program_name(program) in names.interpreters
    if script and following[:1] in {"-", "+", ""}:
        return Offer()
    if names.install_words & {following, third}:
        return Offer(refuse=_subcommand(words, head))
    exact = _exact_scopes(words, context, folders)
    refused_words = _texts(words[: head + 2]) if script else _subcommand(words, head)
    return Offer(allow=exact, refuse=(refused_words or _texts(words[: head + 1])) if exact else ())


def _subcommand(words: Sequence[Word], head: int) -> tuple[str, ...]:
    """Return the words up to the subcommand, or () if the word after the program is not a name."""
    following = words[head + 1] if len(words) > head + 1 else Word("-")
    is_name = following.fixed and re.fullmatch(r"[^\W_][\w:.@-]*", following.text, re.ASCII)
    return _texts(words[: head + 2]) if is_name else ()


def _exact_scopes(
    words: Sequence[Word], context: CommandContext, folders: Sequence[str]
) -> tuple[Scope, ...]:
    """Return the grant for exactly these words.

    Empty if a button cannot show them, or if they refer to paths outside the session's folders.
    """
    texts = _texts(words)
    command_line = shlex.join(texts)
    if (
        len(command_line) > _MAX_BUTTON_LENGTH
        or not command_line.isprintable()
        or "`" in command_line
    ):
        return ()
    if any(folder != context.roots[0] for folder in folders):
        return ()  # the same words may do something else in another folder
    if not all(word.fixed and _keeps_inside(word.text, context, folders) for word in words):
        return ()
    return (Scope(words=texts, exact=True),)


def _keeps_inside(text: str, context: CommandContext, folders: Sequence[str]) -> bool:
    value = text.partition("=")[2] or (text[2:] if text.startswith("-") else text)
    if "/" not in value and value != "..":
        return True
    return "://" not in value and all(
        stays_inside(path_word, context, folders) for path_word in _expand_word(Word(value))
    )


# -- arguments that a table covers


def _bind_arguments(
    table: GrantTable, words: Sequence[Word], context: CommandContext, folders: Sequence[str]
) -> _BoundArguments | None:
    """Return the arguments that join the grant, or None if the table does not cover all words."""
    if table.tail is not None:
        end = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
        if _bind_arguments(table.tail, words[end + 1 :], context, folders) is None:
            return None
        words = words[:end]
    if not table.mentions and any(word.text.startswith("@") for word in words):
        return None
    arguments = parse_arguments(words, table.options())
    if arguments is None or not all(
        _fits_kind("path", w, context, folders) for w in arguments.paths
    ):
        return None
    options: list[str] = []
    for option in arguments.options:
        value = option.value
        if value is not None and value.text.startswith("-"):
            return None  # some programs would take the value as an option
        if option.name in table.queries and value is not None:
            if not _fits_kind("query", value, context, folders):
                return None
        elif option.name in table.bound & table.flags:
            options.append(option.name)
        elif option.name in table.bound:
            if value is None or not _fits_kind("target", value, context, folders):
                return None
            options += [option.name, value.text]
    kinds = _operand_kinds(table.operands, len(arguments.operands))
    if kinds is None:
        return None
    pairs = list(zip(kinds, arguments.operands, strict=True))
    if not all(_fits_kind(kind, word, context, folders) for kind, word in pairs):
        return None
    return _BoundArguments(
        operands=tuple(word.text for kind, word in pairs if kind in _BOUND_KINDS),
        options=tuple(options),
    )


def _operand_kinds(operands: Sequence[str], count: int) -> list[str] | None:
    """Return the kind of each of `count` operands, or None for too many or too few operands."""
    kinds: list[str] = []
    for number, operand in enumerate(operands):
        kind = operand.rstrip("*+!")
        if operand != kind and operand[-1] in "+!" and number >= count:
            return None
        kinds += [kind] * (count - number if operand[-1] in "*+" else 1)
    return kinds[:count] if len(kinds) >= count else None


def _fits_kind(kind: str, word: Word, context: CommandContext, folders: Sequence[str]) -> bool:
    """Return whether an operand, or an option's value, is of a kind."""
    text = word.text
    shape = grant_tables().shapes[kind]
    if not re.fullmatch(shape, text, re.ASCII | re.DOTALL):
        return False
    if kind not in _PATH_KINDS:
        return word.fixed
    if kind == "selector":
        word = Word(text.partition("::")[0], word.static, word.pattern)
    if kind == "folder" and not all(os.path.isdir(Path(folder) / text) for folder in folders):
        return False
    return all(stays_inside(path_word, context, folders) for path_word in _expand_word(word))


def _expand_word(word: Word) -> list[Word]:
    """Return the paths to which a program may expand a word: `eslint '{a,../b}/*.ts'`."""
    if word.pattern or not set(word.text) & set("\\{"):
        return [word]
    if "\\" in word.text:
        return [Word(word.text, static=False)]  # the program may remove the backslash
    try:
        spread = to_words(Piece(word.text, LITERAL * len(word.text)), home="~", cwd="~")
    except TooComplexError:
        return [Word(word.text, static=False)]
    return [word, *(Word(each.text, each.static) for each in spread)]
