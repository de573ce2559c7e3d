"""What a program runs that the rules know for running others: `sudo -u x y`, `env -C x y`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.arguments import OptionTable, parse_arguments
from acp_agent.permissions.contract import Tier
from acp_agent.permissions.rules import Wrapper, operands, option_matches
from acp_agent.permissions.shell_syntax import Assignment, Command, without_reserved
from acp_agent.permissions.words import Word

_GUESS_LIMIT = 8


class Inner(Struct, frozen=True, kw_only=True):
    """What a command runs: another `command`, or a `text` that a shell reads.

    `tier` and `why` are those of running it this way. `transparent` is true when that makes no
    difference. `strict` is true when a text that is not known beforehand must not run. `folders`
    are where it runs, if not where the outer command does. `guess` is true for another reading of
    the words, by which a line can be refused and nothing else.
    """

    command: Command | None = None
    text: Word | None = None
    tier: Tier = "standard"
    why: str = ""
    transparent: bool = False
    strict: bool = False
    folders: tuple[str, ...] = ()
    guess: bool = False


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
    words = _behind(command.words[1:], wrapper)
    if words is None:
        return []
    found: list[Inner] = []
    assignments = list(command.assignments)
    takes_text = not wrapper.text_programs or name in wrapper.text_programs
    table = wrapper.options[name].options if name in wrapper.options else None
    value_options = wrapper.value_options if table is None else tuple(table.values)
    skipped = wrapper.leading.get(name, 0)
    ended = False
    passed = 0  # operands before the command
    values: list[list[Word]] = []  # the words from each value on, which may be the command's
    folders: list[str] = []
    while words:
        word = words[0]
        text = word.text
        option = next((o for o in wrapper.text_options if option_matches(text, o)), "")
        if any(option_matches(text, inert) for inert in wrapper.inert_options):
            return []
        following = words[1].text if len(words) > 1 else ""
        folders += _folder_of(text, following, wrapper.folder_options)
        is_option = text[:1] == "-" and len(text) > 1 and not ended
        if text == "--" and not ended:
            ended = True
            words.pop(0)
        elif is_option and option and takes_text:
            found.append(_text_option(words, option, wrapper))
            words.pop(0)
        elif is_option:
            words.pop(0)
            if words and _takes_next(text, value_options):
                values.append(list(words))
                words.pop(0)
        elif wrapper.assignments and "=" in text and text.partition("=")[0].isidentifier():
            assignments.append(Assignment(text.partition("=")[0], Word(text.partition("=")[2])))
            words.pop(0)
            passed += 1
        elif text in wrapper.skip_words:
            words.pop(0)
        elif skipped:
            skipped -= 1
            values.append(list(words))
            words.pop(0)
            passed += 1
        else:
            break
    guesses = _guesses(command, values, assignments, wrapper)
    if wrapper.text_only or not words:
        found = found or ([Inner(tier=wrapper.tier, why=wrapper.why)] if wrapper.why else [])
        return [*found, *guesses]
    inner = replace(_remaining(command, words, assignments, wrapper), folders=tuple(folders))
    if table is not None and _covers(table, command.words[1:], passed + len(words)):
        return [*found, replace(inner, transparent=True)]
    return [*found, inner, *guesses]


def _guesses(
    command: Command, values: Sequence[list[Word]], assignments: list[Assignment], wrapper: Wrapper
) -> list[Inner]:
    """The commands that stand where a value was seen, should it be none."""
    starts = [] if wrapper.text_only else values[:_GUESS_LIMIT]
    return [
        replace(_remaining(command, words, assignments, wrapper), guess=True)
        for words in starts
        if words[0].fixed
    ]


def _covers(table: OptionTable, words: Sequence[Word], operand_count: int) -> bool:
    """Whether a program's table knows each of its options, and sees as many operands."""
    arguments = parse_arguments(words, table)
    return arguments is not None and len(arguments.operands) == operand_count


def _behind(words: Sequence[Word], wrapper: Wrapper) -> list[Word] | None:
    """The words behind the wrapper's subcommand; None where that is not there."""
    leading = operands([word.text for word in words], wrapper.value_options)
    if tuple(leading[: len(wrapper.subcommand)]) != wrapper.subcommand:
        return None
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
    )
