"""What a program runs that the rules know for running others: `sudo -u x y`, `env -C x y`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.contract import Tier
from acp_agent.permissions.rules import Wrapper, operands, option_matches
from acp_agent.permissions.shell_syntax import Assignment, Command, without_reserved
from acp_agent.permissions.words import Word


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


def join(words: Sequence[Word]) -> Word:
    """Words as one text."""
    return Word(" ".join(word.text for word in words), all(word.fixed for word in words))


def with_words(command: Command, words: tuple[Word, ...]) -> Command:
    """`command` with other words, as one that begins with them."""
    if len(words) > 1 and words[1].text == "{":
        words = words[1:]  # `coproc name { …`
    return replace(command, words=without_reserved(words))


def wrapped(command: Command, name: str, wrapper: Wrapper) -> list[Inner]:
    """What `command`, a use of the program `name`, runs by the rule `wrapper`."""
    words = list(command.words[1:])
    found: list[Inner] = []
    if wrapper.subcommand:
        texts = [word.text for word in words]
        leading = tuple(operands(texts, wrapper.value_options)[: len(wrapper.subcommand)])
        if leading != wrapper.subcommand:
            return []
        words = _behind(words, wrapper)
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
            if words and _takes_next(text, wrapper.value_options):
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


def _behind(words: list[Word], wrapper: Wrapper) -> list[Word]:
    """The words behind a subcommand that is known to be there."""
    waiting = list(wrapper.subcommand)
    rest = list(words)
    while waiting and rest:
        text = rest.pop(0).text
        if text in wrapper.value_options and rest:
            rest.pop(0)
        elif text == waiting[0]:
            waiting.pop(0)
    return rest


def _takes_next(text: str, value_options: Sequence[str]) -> bool:
    """Whether the next word is the value of an option, or of the last in a cluster: `-iu x`."""
    if text in value_options or text.startswith("--"):
        return text in value_options
    letters = {option[1] for option in value_options if len(option) == 2}
    first = next((at for at, letter in enumerate(text) if at and letter in letters), 0)
    return first == len(text) - 1


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
        command=replace(with_words(command, tuple(words)), assignments=tuple(assignments)),
        tier=wrapper.tier,
        why=wrapper.why,
        transparent=wrapper.transparent,
    )
