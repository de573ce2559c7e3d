"""What a summary must not lose: the user's own words, open todos, files, names and numbers.

They are taken from the part of the conversation that is summed up. After the model has answered,
whatever of them its summary lacks is put behind it, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from msgspec import Struct

from acp_agent.agent.tokens import BYTES_PER_TOKEN, text_tokens
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

KEPT = "## Kept word for word"

_TASK = 2_000  # characters of the very first words that are kept before all others
_LONGEST_NAME = 200
# Possessive quantifiers and lookbehinds keep them linear, whatever the text.
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
_RESULT_WEIGHT = 0.3  # of an identifier in a result: what people and models wrote matters more
_PLAIN = re.compile(r"[A-Za-z]+(?:-+[A-Za-z]+)+")  # hyphenated words are no names


class Keepsakes(Struct, frozen=True, kw_only=True):
    """What is to be kept of a part of a conversation.

    `words` are the user's, oldest first; `names` what matters most first.
    """

    words: Sequence[str]
    todos: Sequence[PlanEntry]
    files: Sequence[str]
    names: Sequence[str]


def keepsakes(
    events: Iterable[AnyEvent],
    messages: Collection[str],
    texts: Iterable[tuple[str, float]],
    results: Iterable[str] = (),
) -> Keepsakes:
    """What is to be kept.

    Args:
        events: the whole journal.
        messages: the ids of the messages that are summed up.
        texts: what is searched for names, and how much a name in it matters.
        results: what is searched for paths, addresses, UUIDs and hashes alone.
    """
    words: list[str] = []
    todos: Sequence[PlanEntry] = ()
    shown: dict[CallId, list[str]] = {}
    files: dict[str, None] = {}
    for event in events:
        match event:
            case UserMessage() if event.message in messages and not event.local:
                said = [block.text for block in event.content if isinstance(block, TextBlock)]
                words.append("\n".join(said).strip())
            case PlanChanged() if event.plan_id == PLAN:
                todos = [entry for entry in event.entries if entry.status != "completed"]
            case PlanRemoved() if event.plan_id == PLAN:
                todos = ()
            case ToolCalled() | ToolShown() if event.content:
                shown[event.call] = _changed(event.content)
            case ToolEnded() if not event.failed:
                changed = _changed(event.content or ()) or shown.pop(event.call, [])
                files.update(dict.fromkeys(changed))
            case _:
                pass
    return Keepsakes(
        words=[one for one in words if one],
        todos=todos,
        files=list(files),
        names=_names(texts, results),
    )


def completed(summary: str, kept: Keepsakes, room: int) -> str:
    """The summary, with what it lost put behind it, as far as `room` tokens allow.

    Of the user's words the first ones are kept, and of the others the newest. What there is no room
    for can still be found in the journal.
    """
    characters = room * BYTES_PER_TOKEN
    parts: list[str] = []
    said = _words([one for one in kept.words if one not in summary], characters // 2)
    there = "\n".join((summary, *said))
    todos = [entry.content for entry in kept.todos if entry.content not in there]
    if todos:
        lines = [f"- {line}" for line in _fitting(todos, characters // 4)]
        parts.append("Open todos:\n" + "\n".join(lines))
    lost = _fitting((name for name in kept.files if not _has(there, name)), characters // 5)
    if lost:
        parts.append("Files that were changed: " + ", ".join(lost))
        there += "\n".join(lost)
    lost = _fitting((name for name in kept.names if not _has(there, name)), characters // 5)
    if lost:
        parts.append("Names and numbers: " + ", ".join(lost))
    if said:
        parts.append("What the user said:\n" + "\n".join(said))
    if not parts:
        return summary.strip()
    return f"{summary.strip()}\n\n{KEPT}\n" + "\n\n".join(parts)


def _has(text: str, name: str) -> bool:
    """Whether a text has a name as it is, not in the middle of another."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
            return True
        at = text.find(name, at + 1)
    return False


def _changed(content: Sequence[CallContent]) -> list[str]:
    return [part.path for part in content if isinstance(part, DiffPart)]


def _names(texts: Iterable[tuple[str, float]], results: Iterable[str]) -> list[str]:
    """The names in texts, those that matter most first; the later of two that matter alike."""
    weights: dict[str, float] = {}
    last: dict[str, int] = {}
    searched = chain(
        ((_IDENTIFIERS, text, _RESULT_WEIGHT) for text in results),
        ((_NAMES, text, weight) for text, weight in texts),
    )
    for number, (pattern, text, weight) in enumerate(searched):
        for name in {found.rstrip(".,:;") for found in pattern.findall(text)}:
            if 1 < len(name) <= _LONGEST_NAME and not _PLAIN.fullmatch(name):
                weights[name] = weights.get(name, 0.0) + weight
                last[name] = number
    return sorted(weights, key=lambda name: (-weights[name], -last[name], name))


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """The first lines, as many as there is room for."""
    fitting: list[str] = []
    for line in lines:
        room -= 3 * text_tokens(line) + 3
        if room < 0:
            break
        fitting.append(line)
    return fitting


def _words(words: Sequence[str], room: int) -> list[str]:
    """The user's words as quotations: the first ones, then the newest for which there is room."""
    if not words:
        return []
    first = _quoted(words[0], min(_TASK, room))
    room -= BYTES_PER_TOKEN * text_tokens(first)
    newest: list[str] = []
    for one in reversed(words[1:]):
        quoted = _quoted(one, room)
        room -= BYTES_PER_TOKEN * text_tokens(quoted) + 2
        if room < 0:
            break
        newest.append(quoted)
    left_out = len(words) - 1 - len(newest)
    gap = [f"[… {left_out:,} more messages of the user: see session_search …]"] if left_out else []
    return [first, *gap, *reversed(newest)]


def _quoted(text: str, limit: int) -> str:
    if len(text) > limit:
        text = f"{text[:limit]} [… {len(text) - limit:,} more characters]"
    return "> " + text.replace("\n", "\n> ")
