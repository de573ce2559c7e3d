"""Finds the commands that a command runs: `sudo x`, `bash -c x`, `find -exec x` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from acp_agent.permissions.rules import has_option, shell_rules
from acp_agent.permissions.shell_syntax import Command
from acp_agent.permissions.words import UNKNOWN, Word
from acp_agent.permissions.wrapped import Inner, join, with_words, wrapped


def base_name(command: Command) -> str:
    """A command's program without its folder; empty where there is none."""
    if not command.words:
        return ""
    text = command.words[0].text
    return text.rstrip("/").rpartition("/")[2] or text


def unwrap(command: Command) -> list[Inner]:
    """What `command` runs, one step down; empty where it runs nothing but itself."""
    name = base_name(command)
    words = command.words
    languages = shell_rules().languages
    if name == "eval":
        return [Inner(text=join(words[1:]), strict=True)]
    if name in languages.shells:
        return _shell(command)
    if name in languages.inline:
        return _interpreter(command, languages.inline[name])
    if name in {"source", "."}:
        return _sourced(command)
    if name in {"at", "batch"} and command.stdin is not None:
        return _from_input(command)
    if name == "trap":
        texts = [word for word in words[1:] if not word.text.startswith("-")]
        return [Inner(text=texts[0])] if len(texts) > 1 else []
    if name == "alias":
        return [
            Inner(text=Word(word.text.partition("=")[2], word.static))
            for word in words[1:]
            if "=" in word.text
        ]
    found = _find_actions(command) if name in {"find", "gfind", "fd", "fdfind"} else []
    if name == "git":
        found += _git_aliases(command)
    for wrapper in shell_rules().wrappers:
        if name in wrapper.programs:
            found += wrapped(command, name, wrapper)
    return found


def _shell(command: Command) -> list[Inner]:
    words = command.words[1:]
    skip = shell_rules().languages.shell_value_options
    reads_input = False
    takes_text = False
    at = 0
    while at < len(words):
        text = words[at].text
        if text == "--command":
            takes_text = True
        elif text.startswith("--") and text != "--":
            at += 1 if text in skip else 0
        elif text[:1] in {"-", "+"} and len(text) > 1 and text != "--":
            takes_text = takes_text or (text[0] == "-" and "c" in text)
            reads_input = reads_input or (text[0] == "-" and "s" in text)
            at += 1 if text in skip else 0
        else:
            at += 1 if text in {"-", "--"} else 0
            break
        at += 1
    rest = words[at:]
    if takes_text:
        return [Inner(text=rest[0], strict=True)] if rest else []
    if rest and not reads_input and rest[0].text not in {"/dev/stdin", "-", "/dev/fd/0"}:
        return _script(rest[0])
    return _from_input(command)


def _interpreter(command: Command, inline: Sequence[str]) -> list[Inner]:
    """A program text that nobody has seen: from a pipe, from a process, from `$(…)`."""
    words = command.words[1:]
    if not words or all(word.text[:1] == "-" for word in words):
        takes_text = has_option([word.text for word in words], (*inline, "-m"))
        return _from_input(command) if command.piped and not takes_text else []
    for option, word in pairwise(words):
        if has_option([option.text], inline) and word.text[:1] == UNKNOWN:
            return _script(Word(UNKNOWN))
    return _script(words[0])


def _script(word: Word) -> list[Inner]:
    if word.text.strip(UNKNOWN):
        return []
    return [Inner(text=None, tier="destructive", why="runs a program that nobody has seen")]


def _from_input(command: Command) -> list[Inner]:
    if command.piped:
        why = "runs what another command prints"
        return [Inner(text=command.stdin, tier="destructive", why=why)]
    return [Inner(text=command.stdin, strict=True)] if command.stdin is not None else []


def _sourced(command: Command) -> list[Inner]:
    words = command.words[1:]
    if words and words[0].text in {"/dev/stdin", "/dev/fd/0"}:
        return _from_input(command)
    return _script(words[0]) if words else []


def _find_actions(command: Command) -> list[Inner]:
    """The commands behind -exec and the like, up to `;` or `+` (fd: to the end)."""
    found: list[Inner] = []
    words = command.words
    names = {"-exec", "-execdir", "-ok", "-okdir"}
    if base_name(command) in {"fd", "fdfind"}:
        names = {"-x", "-X", "--exec", "--exec-batch"}
    starts = [at for at, word in enumerate(words) if word.text in names]
    for start in starts:
        inner: list[Word] = []
        for word in words[start + 1 :]:
            if word.text == ";" or (word.text == "+" and inner and inner[-1].text == "{}"):
                break
            inner.append(word)
        found.append(Inner(command=with_words(command, _at_starting_points(command, inner))))
    return found


_NARROWING = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-mtime", "-mmin"}
)
_LIMITING = frozenset(
    {"-atime", "-amin", "-cmin", "-ctime", "-empty", "-group", "-inum", "-maxdepth", "-newer"}
    | {"-nogroup", "-nouser", "-perm", "-samefile", "-size", "-uid", "-user", "-xtype"}
)


def _at_starting_points(command: Command, words: list[Word]) -> tuple[Word, ...]:
    """`{}` replaced by what is searched, if nothing narrows the search: `find / -exec rm {} +`."""
    texts = [word.text for word in command.words[1:]]
    first = next((at for at, text in enumerate(texts) if text[:1] in {"-", "(", "!"}), len(texts))
    if _NARROWING & set(texts) or not first:
        return tuple(words)
    points = command.words[1 : first + 1]
    found = [each for word in words for each in (points if word.text == "{}" else (word,))]
    options = shell_rules().refused.deleters.get(words[0].text if words else "", ("",))
    named = any(word.text == "{}" for word in words)
    if named and options[0] and not _LIMITING & set(texts):
        found.insert(1, Word(options[0]))  # one by one it comes to the whole tree
    return tuple(found)


def _git_aliases(command: Command) -> list[Inner]:
    found: list[Inner] = []
    texts = command.words
    for word, following in zip(texts, [*texts[1:], Word("")], strict=True):
        name, mark, value = word.text.partition("=")
        if not mark and name.lower().startswith("alias."):
            value = following.text
        if value.startswith("!"):
            found.append(Inner(text=Word(value[1:], word.static and following.static)))
        elif value and name.lower().startswith("alias."):
            words = (texts[0], *(Word(text, word.static) for text in value.split()))
            found.append(Inner(command=replace(command, words=words)))
    return found
