"""Finds the commands that a command runs: `sudo x`, `bash -c x`, `find -exec x` and so on."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.contract import Tier
from acp_agent.permissions.rules import Wrapper, operands, option_matches, shell_rules
from acp_agent.permissions.shell_syntax import Assignment, Command, without_reserved
from acp_agent.permissions.words import UNKNOWN, Word


class Inner(Struct, frozen=True, kw_only=True):
    """What a command runs: another `command`, or a `text` that a shell reads.

    `tier` and `why` are those of running it this way. `transparent` is true when that makes no
    difference. `strict` is true when a text that is not known beforehand must not run. `folders`
    are where it runs, if not where the outer command does.
    """

    command: Command | None = None
    text: Word | None = None
    tier: Tier = "standard"
    why: str = ""
    transparent: bool = False
    strict: bool = False
    folders: tuple[str, ...] = ()


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
    if name in {"source", "."}:
        return _sourced(command)
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
            found += _wrapped(command, name, wrapper)
    return found


def join(words: Sequence[Word]) -> Word:
    """Words as one text."""
    return Word(" ".join(word.text for word in words), all(word.fixed for word in words))


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
        found.append(Inner(command=_with(command, _at_starting_points(command, inner))))
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
    if len(found) > len(words) - len(points) and options[0] and not _LIMITING & set(texts):
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


def _wrapped(command: Command, name: str, wrapper: Wrapper) -> list[Inner]:
    words = list(command.words[1:])
    found: list[Inner] = []
    if wrapper.subcommand:
        texts = [word.text for word in words]
        leading = tuple(operands(texts, wrapper.value_options)[: len(wrapper.subcommand)])
        if leading != wrapper.subcommand:
            return []
        last = texts.index(wrapper.subcommand[-1], 0)
        words = words[last + 1 :]
    assignments = list(command.assignments)
    takes_text = not wrapper.text_programs or name in wrapper.text_programs
    skipped = wrapper.leading.get(name, 0)
    opaque = False
    folders: list[str] = []
    while words:
        word = words[0]
        text = word.text
        opaque = opaque or any(option_matches(text, option) for option in wrapper.opaque_options)
        option = next((o for o in wrapper.text_options if option_matches(text, o)), "")
        if any(option_matches(text, inert) for inert in wrapper.inert_options):
            return []
        following = words[1].text if len(words) > 1 else ""
        folders += _folder_of(text, following, wrapper.folder_options)
        if text == "--":
            words.pop(0)
            break
        if text[:1] == "-" and len(text) > 1 and option and takes_text:
            found.append(_text_option(words, option, wrapper))
            words.pop(0)
        elif text[:1] == "-" and len(text) > 1:
            words.pop(0)
            if text in wrapper.value_options and words:
                words.pop(0)
        elif wrapper.assignments and "=" in text and text.partition("=")[0].isidentifier():
            assignments.append(Assignment(text.partition("=")[0], Word(text.partition("=")[2])))
            words.pop(0)
        elif text in wrapper.skip_words:
            words.pop(0)
        elif skipped:
            skipped -= 1
            words.pop(0)
        else:
            break
    if wrapper.text_only or not words:
        return found or ([Inner(tier=wrapper.tier, why=wrapper.why)] if wrapper.why else [])
    inner = replace(_remaining(command, words, assignments, wrapper), folders=tuple(folders))
    return [*found, replace(inner, transparent=False) if opaque else inner]


def _folder_of(text: str, following: str, options: Sequence[str]) -> list[str]:
    """The folder that an option names: `-C x`, `-Cx`, `--chdir x`, `--chdir=x`."""
    for option in options:
        if text == option:
            return [following]
        if option.startswith("--") and option_matches(text, option):
            return [text.partition("=")[2] or following]
        if len(option) == 2 and text.startswith(option):
            return [text[2:]]
    return []


def _text_option(words: list[Word], option: str, wrapper: Wrapper) -> Inner:
    """The command line that is the value of `words[0]`, which may take `words[1]` with it."""
    word = words[0]
    attached = ""
    if word.text.startswith("--"):
        attached = word.text.partition("=")[2]
    elif len(word.text) > 2 and option == word.text[:2]:
        attached = word.text[2:]
    if attached:
        value = Word(attached, word.static)
    elif len(words) > 1:
        value = words.pop(1)
    else:
        value = Word("")
    if option in {"-S", "--split-string"}:
        value = Word(" ".join([value.text, *(w.text for w in words[1:])]), value.static)
    return Inner(text=value, tier=wrapper.tier, why=wrapper.why, strict=True)


def _remaining(
    command: Command, words: list[Word], assignments: list[Assignment], wrapper: Wrapper
) -> Inner:
    if wrapper.joined:
        end = next((at for at, w in enumerate(words) if w.text in wrapper.ends_at), len(words))
        return Inner(text=join(words[:end]), tier=wrapper.tier, why=wrapper.why)
    if wrapper.appends_input and command.stdin is not None:
        words = [*words, *(Word(text, static=False) for text in command.stdin.text.split())]
    elif wrapper.appends_input:
        words = [*words, Word("…", static=False)]
    return Inner(
        command=replace(_with(command, tuple(words)), assignments=tuple(assignments)),
        tier=wrapper.tier,
        why=wrapper.why,
        transparent=wrapper.transparent,
    )


def _with(command: Command, words: tuple[Word, ...]) -> Command:
    return replace(command, words=without_reserved(words))
