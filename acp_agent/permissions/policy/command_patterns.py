"""What a rule like `Bash(git push *)` matches: words of a command, never the text of a line.

The words are those that the shell would pass, without quotes, so that quoting hides nothing. `*`
matches any text, blanks between words too. A blank and `*` (or `:*`) at the end match what may
follow the words before.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from acp_agent.permissions.policy.rules import RuleError
from acp_agent.permissions.rules import operands, option_matches, shell_rules
from acp_agent.permissions.shell.syntax import Command
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN

_BETWEEN = "\x1f"  # between two words; no command line that is judged has it
_ANY = "\x02"  # a `*` of the pattern
_STAR = "\x03"  # an escaped one
_OPERATORS = re.compile(r"[|&;<>\n`]|\$\(")
_UNKNOWN = re.compile(f"[{UNKNOWN}{NONEMPTY}]")


class CommandPattern(Struct, frozen=True):
    """The pattern of a rule about commands.

    Attributes:
        words: its words; those with a wildcard have it as `_ANY`.
        fixed: the words before the first wildcard.
        regex: what the words of a command match, with `_BETWEEN` between them.
    """

    words: tuple[str, ...]
    fixed: tuple[str, ...]
    regex: re.Pattern[str]

    @property
    def program(self) -> str:
        """The program that a command must name; empty if it may be any."""
        return self.fixed[0] if self.fixed else ""

    @property
    def literal(self) -> str:
        """The command line of all words without a wildcard: what the rule names itself."""
        return shlex.join(word for word in self.words if _ANY not in word)

    def matches(self, words: Sequence[str]) -> bool:
        """Whether exactly these words match."""
        return self.regex.fullmatch(_BETWEEN.join(words)) is not None

    def may_match(self, words: Sequence[str]) -> bool:
        """Whether words may match of which the run decides parts, as far as the fixed words go."""
        if not self.fixed or len(words) < len(self.fixed):
            return False
        parts = zip(self.fixed, words, strict=False)
        return all(_may_be(word, known) for known, word in parts)

    def matches_reordered(self, words: Sequence[str]) -> bool:
        """Whether words match wherever their options stand: `push origin --force`.

        Only for patterns that name options, without a wildcard in them.
        """
        options = [word for word in self.fixed[1:] if word[:1] == "-" and len(word) > 1]
        if not options or any(word[:1] == "-" and _ANY in word for word in self.words):
            return False
        plain = [word for word in self.words if word not in options]
        rest = _without_options(words)
        if _compile(plain).fullmatch(_BETWEEN.join(rest)) is None:
            return False
        return all(
            any(option_matches(word, one) for word in words[1:] if word[:1] == "-")
            for option in options
            for one in _single(option)
        )


def compile_command(pattern: str) -> CommandPattern:
    """Return the pattern of a rule about commands.

    Raises:
        RuleError: it is about more than one command, or has an open quote.
    """
    marked = pattern.replace("\\*", _STAR)
    if marked.endswith(":*"):
        marked = f"{marked[:-2]} *"
    try:
        # Quotes make one word of several, in a rule as in a command.
        words = shlex.split(marked.replace("*", _ANY))
    except ValueError:
        raise RuleError("a quote in it is not closed") from None
    if _OPERATORS.search(_unquoted(marked)):
        raise RuleError(
            "a rule is about one command; write one for each command of the line, without "
            "redirections and substitutions"
        )
    if not words:
        raise RuleError("it names no command")
    fixed: list[str] = []
    for word in words:
        if _ANY in word:
            break
        fixed.append(word.replace(_STAR, "*"))
    plain = tuple(word.replace(_STAR, "*") for word in words)
    return CommandPattern(plain, tuple(fixed), _compile(words))


def _unquoted(text: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"|\\.", "", text)


def _compile(words: Sequence[str]) -> re.Pattern[str]:
    open_end = len(words) > 1 and words[-1] == _ANY
    body = words[:-1] if open_end else words
    parts = [
        "".join(".*" if part == _ANY else re.escape(part.replace(_STAR, "*")) for part in _split(w))
        for w in body
    ]
    end = f"(?:{_BETWEEN}.*)?" if open_end else ""
    return re.compile(_BETWEEN.join(parts) + end, re.DOTALL)


def _split(word: str) -> list[str]:
    return [part for part in re.split(f"({_ANY})", word) if part]


def _may_be(word: str, known: str) -> bool:
    """Whether a word, with parts that only the run shows, may come to `known`."""
    if not _UNKNOWN.search(word):
        return word == known
    parts = (re.escape(part) for part in _UNKNOWN.split(word))
    return re.fullmatch(".*".join(parts), known, re.DOTALL) is not None


def _single(option: str) -> list[str]:
    """The options of a cluster: `-rf` is `-r` and `-f`."""
    if option.startswith("--") or len(option) == 2:
        return [option]
    return [f"-{letter}" for letter in option[1:]]


def _without_options(words: Sequence[str]) -> list[str]:
    name = words[0].rpartition("/")[2]
    return [words[0], *operands(words[1:], shell_rules().globals.get(name, ()))]


def spellings(command: Command) -> list[tuple[str, ...]]:
    """The ways in which a rule that refuses may name a command.

    As it is written, without the program's folder and case, without options before the subcommand
    (`git -C x push`), and with the files that it is redirected to.
    """
    words = tuple(word.text for word in command.words)
    if not words:
        return []
    name = words[0].rstrip("/").rpartition("/")[2] or words[0]
    found = [words, (name, *words[1:]), (name.lower(), *words[1:])]
    found.append((name, *_behind_globals(name, words[1:])))
    targets = [redirect.target.text for redirect in command.redirects]
    if targets:
        found += [(*each, *targets) for each in found]
    return list(dict.fromkeys(found))


def _behind_globals(name: str, words: Sequence[str]) -> Sequence[str]:
    """The words from the subcommand on."""
    values = shell_rules().globals.get(name, ())
    at = 0
    while at < len(words) and words[at][:1] == "-":
        at += 2 if words[at] in values else 1
    return words[at:]
