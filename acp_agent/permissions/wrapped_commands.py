"""Find the commands that a command runs: `sudo x`, `bash -c x`, `find -exec x` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.access import Tier
from acp_agent.permissions.arguments import OptionTable, parse_arguments
from acp_agent.permissions.printed_names import appended_words, piped_names
from acp_agent.permissions.rules import Wrapper, has_option, operands, option_matches, shell_rules
from acp_agent.permissions.shell.syntax import Assignment, Command, without_reserved
from acp_agent.permissions.shell.words import UNKNOWN, Word


def base_name(command: Command) -> str:
    """Return a command's program without its folder; "" if there is none."""
    if not command.words:
        return ""
    text = command.words[0].text
    return text.rstrip("/").rpartition("/")[2] or text


def inner_commands(command: Command) -> list[InnerCommand]:
    """Return what `command` runs directly; empty if it runs nothing but itself."""
    name = base_name(command)
    words = command.words
    languages = shell_rules().languages
    if name == "eval":
        return [InnerCommand(text=join_words(words[1:]), strict=True)]
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
        return [InnerCommand(text=texts[0])] if len(texts) > 1 else []
    if name == "alias":
        return [
            InnerCommand(text=Word(word.text.partition("=")[2], word.static))
            for word in words[1:]
            if "=" in word.text
        ]
    inner = _find_actions(command) if name in {"find", "gfind", "fd", "fdfind"} else []
    if name == "git":
        inner += _git_aliases(command)
    for wrapper in shell_rules().wrappers:
        if name in wrapper.programs:
            inner += wrapped_commands(command, name, wrapper)
    return inner


def _shell(command: Command) -> list[InnerCommand]:
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
    arguments = words[at:]
    if takes_text:
        return [InnerCommand(text=arguments[0], strict=True)] if arguments else []
    if arguments and not reads_input and arguments[0].text not in {"/dev/stdin", "-", "/dev/fd/0"}:
        return _script(arguments[0])
    return _from_input(command)


def _interpreter(command: Command, inline: Sequence[str]) -> list[InnerCommand]:
    """Return the unknown programs that an interpreter runs: from a pipe, a process or `$(…)`."""
    words = command.words[1:]
    if not words or all(word.text[:1] == "-" for word in words):
        takes_text = has_option([word.text for word in words], (*inline, "-m"))
        has_input = command.piped or any(redirect.operator == "<" for redirect in command.redirects)
        return _from_input(command) if has_input and not takes_text else []
    for option, word in pairwise(words):
        if has_option([option.text], inline) and word.text[:1] == UNKNOWN:
            return _script(Word(UNKNOWN))
    return _script(words[0])


def _script(word: Word) -> list[InnerCommand]:
    if word.text.strip(UNKNOWN):
        return []
    return [InnerCommand(text=None, tier="destructive", why="runs a program that nobody has seen")]


def _from_input(command: Command) -> list[InnerCommand]:
    if any(r.operator == "<" and not r.target.text.strip(UNKNOWN) for r in command.redirects):
        return _script(Word(UNKNOWN))  # `< <(…)`
    if command.piped:
        why = "runs what another command prints"
        return [InnerCommand(text=command.stdin, tier="destructive", why=why)]
    return [InnerCommand(text=command.stdin, strict=True)] if command.stdin is not None else []


def _sourced(command: Command) -> list[InnerCommand]:
    words = command.words[1:]
    if words and words[0].text in {"/dev/stdin", "/dev/fd/0"}:
        return _from_input(command)
    return _script(words[0]) if words else []


def _find_actions(command: Command) -> list[InnerCommand]:
    """Return the commands after -exec and the like, up to `;` or `+` (fd: up to the end)."""
    actions: list[InnerCommand] = []
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
        actions.append(
            InnerCommand(command=with_words(command, _at_starting_points(command, inner)))
        )
    return actions


def without_actions(command: Command) -> Command:
    """Return a `find -type f` without its -exec; it passes only files, so no link is followed."""
    texts = [word.text for word in command.words]
    if base_name(command) != "find" or ("-type", "f") not in pairwise(texts):
        return command
    words: list[Word] = []
    inside = False
    for word, previous in zip(command.words, [Word(""), *command.words], strict=False):
        inside = inside or word.text == "-exec"
        if not inside:
            words.append(word)
        if word.text == ";" or (word.text == "+" and previous.text == "{}"):
            inside = False
    return replace(command, words=tuple(words))


_NARROWING = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-mtime", "-mmin"}
)
_LIMITING = frozenset(
    {"-atime", "-amin", "-cmin", "-ctime", "-empty", "-group", "-inum", "-maxdepth", "-newer"}
    | {"-nogroup", "-nouser", "-perm", "-samefile", "-size", "-uid", "-user", "-xtype"}
)


def _at_starting_points(command: Command, words: list[Word]) -> tuple[Word, ...]:
    """Return the words with `{}` replaced by the starting points: `find / -exec rm {} +`.

    Left unchanged if an option narrows the search.
    """
    texts = [word.text for word in command.words[1:]]
    first_option = next(
        (at for at, text in enumerate(texts) if text[:1] in {"-", "(", "!"}), len(texts)
    )
    if _NARROWING & set(texts) or not first_option:
        return tuple(words)
    if words and words[0].text.rpartition("/")[2] in shell_rules().languages.shells:
        return tuple(words)  # `sh -c {}` runs the names themselves
    points = command.words[1 : first_option + 1]
    expanded = [
        replacement for word in words for replacement in (points if word.text == "{}" else (word,))
    ]
    options = shell_rules().refused.deleters.get(words[0].text if words else "", ("",))
    uses_placeholder = any(word.text == "{}" for word in words)
    if uses_placeholder and options[0] and not _LIMITING & set(texts):
        expanded.insert(1, Word(options[0]))  # file by file it reaches the whole tree
    return tuple(expanded)


def _git_aliases(command: Command) -> list[InnerCommand]:
    aliases: list[InnerCommand] = []
    texts = command.words
    for word, following in zip(texts, [*texts[1:], Word("")], strict=True):
        name, mark, value = word.text.partition("=")
        if not mark and name.lower().startswith("alias."):
            value = following.text
        if value.startswith("!"):
            aliases.append(InnerCommand(text=Word(value[1:], word.static and following.static)))
        elif value and name.lower().startswith("alias."):
            words = (texts[0], *(Word(text, word.static) for text in value.split()))
            aliases.append(InnerCommand(command=replace(command, words=words)))
    return aliases


_GUESS_LIMIT = 8


class InnerCommand(Struct, frozen=True, kw_only=True):
    """What a command runs: another `command`, or a `text` that a shell reads.

    `tier` and `why` describe running it this way. `transparent` is true if the wrapper itself needs
    no check. `strict` is true if an unknown text must not run. `folders` are the folders it runs
    in, if they differ from those of the outer command. `guess` is true for an alternative reading
    of the words, which can only lead to a refusal.
    """

    command: Command | None = None
    text: Word | None = None
    tier: Tier = "standard"
    why: str = ""
    transparent: bool = False
    strict: bool = False
    folders: tuple[str, ...] = ()
    guess: bool = False


def join_words(words: Sequence[Word]) -> Word:
    """Return the words joined into one text."""
    return Word(" ".join(word.text for word in words), all(word.fixed for word in words))


def with_words(command: Command, words: tuple[Word, ...]) -> Command:
    """Return `command` with other words, without leading reserved words."""
    if len(words) > 1 and words[1].text == "{":
        words = words[1:]  # `coproc name { …`
    return replace(command, words=without_reserved(words))


def wrapped_commands(command: Command, name: str, wrapper: Wrapper) -> list[InnerCommand]:
    """Return what `command`, a use of the program `name`, runs according to `wrapper`."""
    words = _after_subcommand(command.words[1:], wrapper)
    if words is None:
        return []
    option_commands: list[InnerCommand] = []
    assignments = list(command.assignments)
    takes_text = not wrapper.text_programs or name in wrapper.text_programs
    table = wrapper.options.get(name)
    value_options = wrapper.value_options or (tuple(table.values) if table else ())
    skipped = wrapper.leading.get(name, 0)
    ended = False
    operand_count = 0  # operands before the command
    values: list[list[Word]] = []  # the words from each option value on, which may be a command
    folders: list[str] = []
    while words:
        word = words[0]
        text = word.text
        option = next((o for o in wrapper.text_options if option_matches(text, o)), "")
        if any(option_matches(text, option) for option in wrapper.no_run_options):
            return []
        following = words[1].text if len(words) > 1 else ""
        folders += _folder_option(text, following, wrapper.folder_options)
        is_option = text[:1] == "-" and len(text) > 1 and not ended
        if text == "--" and not ended:
            ended = True
            words.pop(0)
        elif is_option and option and takes_text:
            option_commands.append(_text_option(words, option, wrapper))
            words.pop(0)
        elif is_option:
            words.pop(0)
            if words and _takes_next(text, value_options):
                values.append(list(words))
                words.pop(0)
        elif wrapper.assignments and "=" in text and text.partition("=")[0].isidentifier():
            assignments.append(Assignment(text.partition("=")[0], Word(text.partition("=")[2])))
            words.pop(0)
            operand_count += 1
        elif text in wrapper.skip_words:
            words.pop(0)
        elif skipped:
            skipped -= 1
            values.append(list(words))
            words.pop(0)
            operand_count += 1
        else:
            break
    guesses = _guesses(command, values, assignments, wrapper)
    if wrapper.text_only or not words:
        return [*(option_commands or _default_commands(command, name, wrapper)), *guesses]
    inner = replace(_inner_command(command, words, assignments, wrapper), folders=tuple(folders))
    certain = not wrapper.appends_input or bool(piped_names(command))
    if (
        certain
        and table is not None
        and _covers(table, command.words[1:], operand_count + len(words))
    ):
        return [*option_commands, replace(inner, transparent=True)]
    return [*option_commands, inner, *guesses]


def _default_commands(command: Command, name: str, wrapper: Wrapper) -> list[InnerCommand]:
    """Return what a wrapper runs without a command: a shell, or nothing."""
    commands = [InnerCommand(tier=wrapper.tier, why=wrapper.why)] if wrapper.why else []
    return commands + (_from_input(command) if name in wrapper.shells else [])


def _guesses(
    command: Command, values: Sequence[list[Word]], assignments: list[Assignment], wrapper: Wrapper
) -> list[InnerCommand]:
    """Return the commands that result if words taken as option values are not values."""
    starts = [] if wrapper.text_only else values[:_GUESS_LIMIT]
    return [
        replace(_inner_command(command, words, assignments, wrapper), guess=True)
        for words in starts
        if words[0].fixed
    ]


def _covers(table: OptionTable, words: Sequence[Word], operand_count: int) -> bool:
    """Return whether a table knows each option of a program and finds as many operands."""
    arguments = parse_arguments(words, table)
    return arguments is not None and len(arguments.operands) == operand_count


def _after_subcommand(words: Sequence[Word], wrapper: Wrapper) -> list[Word] | None:
    """Return the words after the wrapper's subcommand, or None if it is missing."""
    leading = operands([word.text for word in words], wrapper.value_options)
    if tuple(leading[: len(wrapper.subcommand)]) != wrapper.subcommand:
        return None
    expected = list(wrapper.subcommand)
    remaining = list(words)
    while expected and remaining:
        text = remaining.pop(0).text
        if text in wrapper.value_options and remaining:
            remaining.pop(0)
        elif text == expected[0]:
            expected.pop(0)
    return remaining


def _takes_next(text: str, value_options: Sequence[str]) -> bool:
    """Return whether an option, or the last one in a cluster (`-iu x`), takes the next word."""
    if text in value_options or text.startswith("--"):
        return text in value_options
    letters = {option[1] for option in value_options if len(option) == 2}
    first = next((at for at, letter in enumerate(text) if at and letter in letters), 0)
    return first == len(text) - 1


def _folder_option(text: str, following: str, options: Sequence[str]) -> list[str]:
    """Return the folder that an option names: `-C x`, `-Cx`, `--chdir x`, `--chdir=x`."""
    for option in options:
        if text == option:
            return [following]
        if option.startswith("--") and option_matches(text, option):
            return [text.partition("=")[2] or following]
        if len(option) == 2 and text.startswith(option):
            return [text[2:]]
    return []


def _text_option(words: list[Word], option: str, wrapper: Wrapper) -> InnerCommand:
    """Return the command line in the value of the option `words[0]`; may remove `words[1]`."""
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
    return InnerCommand(text=value, tier=wrapper.tier, why=wrapper.why, strict=True)


def _inner_command(
    command: Command, words: list[Word], assignments: list[Assignment], wrapper: Wrapper
) -> InnerCommand:
    if wrapper.joined:
        end = next((at for at, w in enumerate(words) if w.text in wrapper.ends_at), len(words))
        text, values = join_words(words[:end]), join_words(words[end + 1 :])
        if values.text and "{}" in text.text:
            text = Word(text.text.replace("{}", values.text), text.static)
        elif values.text:
            text = join_words([text, values])
        return InnerCommand(text=text, tier=wrapper.tier, why=wrapper.why)
    if wrapper.appends_input:
        words = [*words, *appended_words(command)]
    return InnerCommand(
        command=replace(with_words(command, tuple(words)), assignments=tuple(assignments)),
        tier=wrapper.tier,
        why=wrapper.why,
    )
