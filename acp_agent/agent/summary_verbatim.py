"""Preserve details that a summary must repeat verbatim, and append those that it lacks.

The details are the user's messages, open todos, changed files, names and numbers. They are
collected from the part of the conversation that is summarised.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from msgspec import Struct

from acp_agent.agent.token_count import BYTES_PER_TOKEN, text_tokens
from acp_agent.content import CallContent, DiffPart, TextBlock
from acp_agent.events import (
    PLAN,
    AnyEvent,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    ToolCalled,
    ToolEnded,
    ToolShown,
    UserMessage,
)
from acp_agent.ids import CallId

VERBATIM_HEADING = "## Kept word for word"

_FIRST_MESSAGE = 2_000  # characters of the user's first message, which has priority
_MAX_NAME = 200
# Possessive quantifiers and lookbehinds make these patterns linear for every text.
_PATHS = r"""(?x)
    \b[a-z][a-z0-9+]{0,15}+://[^\s<>"'`)\]}]++                             # addresses
  | \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b              # UUIDs
  | (?<![\w.+-])[\w.+-]++@\w[\w-]*+\.\w[\w.:/-]*+                          # mail, repositories
  | \b[A-Za-z]:\\[^\s<>"'`|*?:,;)\]}]++(?::\d+)?                          # paths with a drive
  | (?<![\w/.~@+-])(?:(?:~|\.{1,2})?/)?(?:\.?[\w@+-][\w.@+-]*+/)++\.?[\w@+-][\w.@+-]*+(?::\d+)?
                                                                          # paths
  | (?<![\w/.~@+-])(?:~|\.{1,2})?/\.?[\w@+-][\w.@+-]*+                    # paths at a root
"""
_FILES = r"""
  | (?<![\w/.-])(?:[\w-]++\.)++[A-Za-z]{1,5}(?::\d+)?(?![\w/])            # files, dotted names
  | (?<![\w/.~)\]-])\.[A-Za-z][\w-]++(?![\w(])                            # .env
"""
_HASHES = r"""
  | \b0x[0-9a-fA-F]++\b                                                   # addresses in memory
  | \b(?=[0-9a-f]{0,63}\d)(?=[0-9a-f]{0,63}[a-f])[0-9a-f]{7,64}\b         # hashes
  | \b(?=[0-9A-F]{0,63}\d)(?=[0-9A-F]{0,63}[A-F])[0-9A-F]{7,64}\b
"""
_WORDS = r"""
  | (?<![\w-])[A-Za-z][A-Za-z0-9]*+(?:[_-]++[A-Za-z0-9]++)++(?!\w)         # ids, snake_case
  | (?<![\w-])[^\W\d_][^\W_]*+(?:_++[^\W_]++)++                            # the same, of any script
  | (?<![\w:])[A-Za-z_]\w*+(?:::\w++)++                                   # std::vector
  | (?<![\w-])--[A-Za-z][\w-]*+                                           # --options
  | \b[a-z]++[A-Z][A-Za-z0-9]*+\b | \b(?:[A-Z][a-z0-9]++){2,}+\b          # camelCase
  | \b[A-Z]{2,}[a-z]{2}[A-Za-z0-9]*+\b | \b[A-Z]++\d[A-Z0-9]++\b          # HTTPServer, E0502
  | \bv?\d++(?:[.:,/-]\d++)++(?:[-.]?(?:alpha|beta|dev|post|pre|rc)(?:[.-]?\d++)?)?\b  # versions
  | \b\d{2,}+\b                                                           # numbers
"""
_NAMES = re.compile(_PATHS + _FILES + _HASHES + _WORDS)
_IDENTIFIERS = re.compile(_PATHS + _HASHES)
_RESULT_WEIGHT = 0.3  # of an identifier in a result; text by people and models weighs more
# Notes that the agent adds to a prompt (acp_agent.session.turns.prompt_notes).
_NOTES = re.compile(r"^\[(?:Today is|Mode:|The working folder is now) [^\n]*\]$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z]+(?:-+[A-Za-z]+)+")  # hyphenated words are not names


class Verbatim(Struct, frozen=True, kw_only=True):
    """Details to preserve from a part of a conversation.

    `messages` are the user's messages, oldest first. `names` begins with the most important ones.
    """

    messages: Sequence[str]
    todos: Sequence[PlanEntry]
    files: Sequence[str]
    names: Sequence[str]


def collect_verbatim(
    events: Iterable[AnyEvent],
    ids: Collection[str],
    texts: Iterable[tuple[str, float]],
    results: Iterable[str] = (),
) -> Verbatim:
    """Collect the details to preserve.

    Args:
        events: the whole journal.
        texts: texts to search for names, each with the weight of a name in it.
        results: texts to search for paths, addresses, UUIDs and hashes only.
    """
    user_texts: list[str] = []
    todos: Sequence[PlanEntry] = ()
    diffs_by_call: dict[CallId, list[str]] = {}
    files: dict[str, None] = {}
    for event in events:
        match event:
            case UserMessage() if event.message in ids and not event.local:
                texts_in = [block.text for block in event.content if isinstance(block, TextBlock)]
                user_texts.append("\n".join(texts_in).strip())
            case PlanChanged() if event.plan_id == PLAN:
                todos = [entry for entry in event.entries if entry.status != "completed"]
            case PlanRemoved() if event.plan_id == PLAN:
                todos = ()
            case ToolCalled() | ToolShown() if event.content:
                diffs_by_call[event.call] = _changed_paths(event.content)
            case ToolEnded() if not event.failed:
                changed = _changed_paths(event.content or ()) or diffs_by_call.pop(event.call, [])
                files.update(dict.fromkeys(changed))
    return Verbatim(
        messages=[text for text in user_texts if text],
        todos=todos,
        files=list(files),
        names=_names(texts, results),
    )


def append_missing(summary: str, verbatim: Verbatim, max_tokens: int) -> str:
    """Return the summary with the details that it lacks, in at most `max_tokens` more tokens.

    The first and the newest of the user's messages are included. The others stay in the journal.
    """
    characters = max_tokens * BYTES_PER_TOKEN
    sections: list[str] = []
    quoted = _quoted_messages(
        [text for text in verbatim.messages if text not in summary], characters // 2
    )
    present = "\n".join((summary, *quoted))
    todos = [entry.content for entry in verbatim.todos if entry.content not in present]
    if todos:
        lines = [f"- {line}" for line in _take_fitting(todos, characters // 4)]
        sections.append("Open todos:\n" + "\n".join(lines))
    missing = _take_fitting(
        (name for name in verbatim.files if not _contains(present, name)), characters // 5
    )
    if missing:
        sections.append("Files that were changed: " + ", ".join(missing))
        present += "\n".join(missing)
    missing = _take_fitting(
        (name for name in verbatim.names if not _contains(present, name)), characters // 5
    )
    if missing:
        sections.append("Names and numbers: " + ", ".join(missing))
    if quoted:
        sections.append("What the user said:\n" + "\n".join(quoted))
    if not sections:
        return summary.strip()
    return f"{summary.strip()}\n\n{VERBATIM_HEADING}\n" + "\n\n".join(sections)


def _contains(text: str, name: str) -> bool:
    """Return whether a text contains a name that is not part of a longer word."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(name, at + 1)
    return False


def _changed_paths(content: Sequence[CallContent]) -> list[str]:
    return [part.path for part in content if isinstance(part, DiffPart)]


def _names(texts: Iterable[tuple[str, float]], results: Iterable[str]) -> list[str]:
    """Return the names in texts by weight, heaviest first; of equal ones, the later comes first."""
    weights: dict[str, float] = {}
    last: dict[str, int] = {}
    searched = chain(
        ((_IDENTIFIERS, text, _RESULT_WEIGHT) for text in results),
        ((_NAMES, _NOTES.sub("", text), weight) for text, weight in texts),
    )
    for number, (pattern, text, weight) in enumerate(searched):
        for name in {match.rstrip(".,:;") for match in pattern.findall(text)}:
            if 1 < len(name) <= _MAX_NAME and not _PLAIN.fullmatch(name):
                weights[name] = weights.get(name, 0.0) + weight
                last[name] = number
    return sorted(weights, key=lambda name: (-weights[name], -last[name], name))


def _take_fitting(lines: Iterable[str], characters: int) -> list[str]:
    """Return the first lines, as many as fit in `characters`."""
    fitting: list[str] = []
    for line in lines:
        characters -= 3 * text_tokens(line) + 3
        if characters < 0:
            break
        fitting.append(line)
    return fitting


def _quoted_messages(messages: Sequence[str], characters: int) -> list[str]:
    """Return the user's messages as quotes: the first, then as many of the newest as fit."""
    if not messages:
        return []
    first = _quote(messages[0], min(_FIRST_MESSAGE, characters))
    characters -= BYTES_PER_TOKEN * text_tokens(first)
    newest: list[str] = []
    for text in reversed(messages[1:]):
        quoted = _quote(text, characters)
        characters -= BYTES_PER_TOKEN * text_tokens(quoted) + 2
        if characters < 0:
            break
        newest.append(quoted)
    omitted = len(messages) - 1 - len(newest)
    gap = [f"[… {omitted:,} more messages of the user: see session_search …]"] if omitted else []
    return [first, *gap, *reversed(newest)]


def _quote(text: str, limit: int) -> str:
    if len(text) > limit:
        text = f"{text[:limit]} [… {len(text) - limit:,} more characters]"
    return "> " + text.replace("\n", "\n> ")
