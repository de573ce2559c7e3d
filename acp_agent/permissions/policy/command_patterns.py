"""Match rules like `Bash(git push *)` against the words of a command, never against raw text.

The words are those that the shell would pass, without quotes, so quoting cannot hide anything. `*`
matches any text, including blanks between words. A blank and `*` (or `:*`) at the end match any
further words, or none.
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

_SEPARATOR = "\x1f"  # separates words; command lines with this character are blocked
_ANY = "\x02"  # a `*` of the pattern
_STAR = "\x03"  # an escaped `*`
_OPERATORS = re.compile(r"[|&;<>\n`]|\$\(")
_UNKNOWN = re.compile(f"[{UNKNOWN}{NONEMPTY}]")


class CommandPattern(Struct, frozen=True):
    """The pattern of a rule about commands.

    Attributes:
        words: its words; a wildcard is stored as `_ANY`.
        fixed: the words before the first wildcard.
        regex: matches the words of a command, joined with `_SEPARATOR`.
    """

    words: tuple[str, ...]
    fixed: tuple[str, ...]
    regex: re.Pattern[str]

    @property
    def program(self) -> str:
        """Return the program that a command must name; empty if it may be any."""
        return self.fixed[0] if self.fixed else ""

    @property
    def literal(self) -> str:
        """Return the command line of all words without a wildcard."""
        return shlex.join(word for word in self.words if _ANY not in word)

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether exactly these words match."""
        return self.regex.fullmatch(_SEPARATOR.join(words)) is not None

    def may_match(self, words: Sequence[str]) -> bool:
        """Return whether words with unknown parts may match the fixed words of the pattern."""
        if not self.fixed or len(words) < len(self.fixed):
            return False
        pairs = zip(self.fixed, words, strict=False)
        return all(may_equal(word, expected) for expected, word in pairs)

    def matches_reordered(self, words: Sequence[str]) -> bool:
        """Return whether words match with their options in any position: `push origin --force`.

        Applies only to patterns that name options without a wildcard.
        """
        options = [word for word in self.fixed[1:] if word[:1] == "-" and len(word) > 1]
        if not options or any(word[:1] == "-" and _ANY in word for word in self.words):
            return False
        plain = [word for word in self.words if word not in options]
        without_options = _without_options(words)
        if _compile(plain).fullmatch(_SEPARATOR.join(without_options)) is None:
            return False
        return all(
            any(option_matches(word, single_option) for word in words[1:] if word[:1] == "-")
            for option in options
            for single_option in _split_cluster(option)
        )


def quote_word(word: str) -> str:
    """Return a word as a pattern that matches only it."""
    return shlex.quote(word).replace("*", "\\*")


def compile_command(pattern: str) -> CommandPattern:
    """Return the compiled pattern of a rule about commands.

    Raises:
        RuleError: the pattern covers more than one command, names none, or has an unclosed quote.
    """
    marked = pattern.replace("\\*", _STAR)
    if marked.endswith(":*"):
        marked = f"{marked[:-2]} *"
    try:
        # Quotes combine several words into one, in a rule as in a command.
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
    expressions = [
        "".join(".*" if part == _ANY else re.escape(part.replace(_STAR, "*")) for part in _split(w))
        for w in body
    ]
    end = f"(?:{_SEPARATOR}.*)?" if open_end else ""
    return re.compile(_SEPARATOR.join(expressions) + end, re.DOTALL)


def _split(word: str) -> list[str]:
    return [part for part in re.split(f"({_ANY})", word) if part]


def may_equal(word: str, expected: str) -> bool:
    """Return whether a word with unknown parts may turn out to be `expected`."""
    if UNKNOWN not in word and NONEMPTY not in word:
        return word == expected
    fragments = (re.escape(part) for part in _UNKNOWN.split(word))
    return re.fullmatch(".*".join(fragments), expected, re.DOTALL) is not None


def _split_cluster(option: str) -> list[str]:
    """Return the single options of a cluster: `-rf` is `-r` and `-f`."""
    if option.startswith("--") or len(option) == 2:
        return [option]
    return [f"-{letter}" for letter in option[1:]]


def _without_options(words: Sequence[str]) -> list[str]:
    name = words[0].rpartition("/")[2]
    return [words[0], *operands(words[1:], shell_rules().globals.get(name, ()))]


def spellings(command: Command) -> list[tuple[str, ...]]:
    """Return the spellings of a command that a rule that refuses or asks is compared with.

    These are the words as written; the program without its folder, and also in lower case; the
    words without options before the subcommand (`git -C x push`); and each of these followed by the
    redirection targets.
    """
    words = tuple(word.text for word in command.words)
    if not words:
        return []
    name = words[0].rstrip("/").rpartition("/")[2] or words[0]
    variants = [words, (name, *words[1:]), (name.lower(), *words[1:])]
    variants.append((name, *_from_subcommand(name, words[1:])))
    targets = [redirect.target.text for redirect in command.redirects]
    if targets:
        variants += [(*variant, *targets) for variant in variants]
    return list(dict.fromkeys(variants))


def _from_subcommand(name: str, words: Sequence[str]) -> Sequence[str]:
    """Return the words from the subcommand on."""
    values = shell_rules().globals.get(name, ())
    at = 0
    while at < len(words) and words[at][:1] == "-":
        at += 2 if words[at] in values else 1
    return words[at:]
