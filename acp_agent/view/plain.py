"""Text as a page can show it: without secrets, bounded, and with nothing hidden in it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from acp_agent.content import HIDDEN
from acp_agent.workspace.scrub import scrub

TEXT_LIMIT = 60_000  # characters of one text
PAGE_LIMIT = 12_000_000  # characters of all, after which one text has
SMALL_LIMIT = 1_500  # of them
LINE_LIMIT = 400  # of a title
_HEAD = 0.7  # of what a cut text keeps, the part that its beginning gets


def visible(text: str) -> str:
    """`text` with what is hidden in it written out: `␛` for an escape, `⟨U+202E⟩` for a mark."""
    return HIDDEN.sub(_name, text.replace("\r\n", "\n"))


def _name(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the pictures of the controls
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"


class Cleaner:
    """Takes texts into a page, and sees to it that all of them fit into one.

    Attributes:
        left_out: how many characters did not.
    """

    def __init__(self, secrets: Sequence[str], *, room: int = PAGE_LIMIT) -> None:
        """Nothing is taken in yet.

        Args:
            secrets: values that must not be in the page.
            room: characters after which texts are cut to `SMALL_LIMIT`.
        """
        self.left_out = 0
        self._secrets = secrets
        self._room = room

    def line(self, text: str) -> str:
        """A title or a name, in one line."""
        line = " ".join(visible(scrub(text, self._secrets)).split())
        return line if len(line) <= LINE_LIMIT else f"{line[: LINE_LIMIT - 1]}…"

    def scrubbed(self, text: str) -> str:
        """All of the text without secrets: for a diff, which is made of whole texts."""
        return scrub(text, self._secrets)

    def text(self, text: str) -> str:
        """A text; of a long one the beginning and the end, `[… 1,234 …]` for what is between."""
        return self.fitted(visible(scrub(text, self._secrets)))

    def fitted(self, text: str) -> str:
        """A clean text, cut in its middle where it is too long."""
        limit = TEXT_LIMIT if self._room > 0 else SMALL_LIMIT
        if len(text) > limit:
            head = int(limit * _HEAD)
            tail = limit - head
            gone = len(text) - limit
            self.left_out += gone
            text = f"{text[:head]}\n[… {gone:,} …]\n{text[-tail:]}"
        self._room -= len(text)
        return text

    def has_room_for(self, size: int) -> bool:
        """Whether so many characters fit; they count as taken in where they do."""
        if self._room < size:
            self.left_out += size
            return False
        self._room -= size
        return True

    def json(self, text: str) -> str:
        """JSON, indented; as it stands where it is none."""
        try:
            value = json.loads(text)
            # By value: in JSON a secret may be written with escapes.
            shown = json.dumps(self._scrubbed_values(value), ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            return self.text(text)
        return self.text(shown)

    def _scrubbed_values(self, value: Any) -> Any:  # JSON, of any kind
        match value:
            case str():
                return scrub(value, self._secrets)
            case dict():
                return {
                    scrub(key, self._secrets): self._scrubbed_values(item)
                    for key, item in value.items()
                }
            case list():
                return [self._scrubbed_values(item) for item in value]
            case _:
                return value
