"""Replace remote pictures in a streamed answer by links.

An editor that renders the Markdown of an answer fetches the pictures in it. A malicious page or
file can make the model put secrets into the address of a picture. The secrets would then leave this
computer without a tool call and without a question to the user. Therefore a remote picture becomes
a link, which only the user can open, and HTML that loads something is shown as text.

Code blocks and code spans stay unchanged if all renderers treat them as code (CommonMark 0.31.2,
sections 4.5 and 6.1). In case of doubt they are treated as text; at worst, an example then lacks
its `!`.
"""

from __future__ import annotations

import re

from acp_agent.events import AgentText, AgentThought, AnyEvent
from acp_agent.ids import MessageId

_MAX_PENDING = 4_000  # characters that are held back until they can be classified
_LONG_TAG = 1_000  # characters; the verdict on a longer tag also holds for tags inside it
_MAX_BRACKETS = 16  # in the description of a picture
_SPECIAL = re.compile(r"[!<\]`\n\\]")
_ESCAPED_LABEL = r"(?:\\.|[^\[\]\\])"
_LABEL_BEFORE = re.compile(rf"\[({_ESCAPED_LABEL}{{1,999}})\Z", re.DOTALL)
_SPECIAL_IN_CODE = re.compile(r"[!<\]]")
_BRACKET = re.compile(r"[\[\]\\]")
_FENCE = re.compile(r"(`{3,}(?=[^`\n]*\n)|~{3,})[^\n]*\n")
_MAYBE_FENCE = re.compile(r"(`{1,2}|~{1,2}|`{3,}[^`\n]*|~{3,}[^\n]*)\Z")
# Code blocks that some editors render instead of showing them as code.
_DRAWN = re.compile(r"[`~]{3,}\s*\{?\.?(mermaid|math|svg|html)", re.IGNORECASE)
_ADDRESS = re.compile(r"[/\\]{2}")
# Lines that may start a block in which fences and spans are not code, or a fence in another block.
_OTHER_BLOCK = re.compile(r"[ \t>]*(\$\$|\\\[|:::)|[ \t>*+.)\d-]+(`{3}|~{3})")
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[\w.+-]+@[\w.-]+>")
_PLAIN_LINK = re.compile(r"""<a\s+href=("[^"<>]*"|'[^'<>]*')\s*>""", re.IGNORECASE)
_LOADS = re.compile(
    r"[/\\]{2}|&|url\(|(https?|ftp|wss?|javascript):"
    r"|<(base|embed|frame|iframe|link|meta|object|script|style|svg)\b",
    re.IGNORECASE,
)
_TARGET = re.compile(r"\s*(?:<([^<>\n]*)>|([^\s)<][^\s)]*(?=[\s)]))|(?=\)))")
_DEFINED = re.compile(r"\s*(?:<([^<>\n]*)>|([^\s<]\S*(?=\s)))")
# A destination that is certainly on this computer: nothing in it can be decoded to a scheme.
_LOCAL = re.compile(r"(?:file:///|data:image/)?(?!//)[\w.~/%+@=,;# -]*\Z")
_IGNORED = dict.fromkeys(map(ord, "\t\n\r\0"))  # characters that browsers remove from addresses
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_TAG_END = re.compile(r">|\n[ \t]*\n")


def without_pictures(text: str) -> str:
    """Return a complete text with remote pictures replaced by links."""
    pictures = RemotePictures()
    return pictures.feed(text) + pictures.end()


class ShownAnswer:
    """Filters the text and the thoughts of a message and returns them as events of the journal.

    Args:
        is_continued: true if it continues an earlier message.
    """

    def __init__(self, message: MessageId, *, is_continued: bool) -> None:
        self._message = message
        self._text = RemotePictures(continues=is_continued)
        self._thought = RemotePictures(continues=is_continued)

    def say(self, text: str) -> list[AnyEvent]:
        """Add a piece of the text; return the events to emit."""
        return [*self._thoughts(self._thought.end()), *self._texts(self._text.feed(text))]

    def think(self, text: str) -> list[AnyEvent]:
        """Add a piece of the thoughts; return the events to emit."""
        return [*self._texts(self._text.end()), *self._thoughts(self._thought.feed(text))]

    def flush(self) -> list[AnyEvent]:
        """Return events for the text and thoughts that were held back."""
        return [*self._thoughts(self._thought.end()), *self._texts(self._text.end())]

    def _texts(self, text: str) -> list[AnyEvent]:
        return [AgentText(message=self._message, text=text)] if text else []

    def _thoughts(self, text: str) -> list[AnyEvent]:
        return [AgentThought(message=self._message, text=text)] if text else []


class RemotePictures:
    """Replaces remote pictures by links in the text of one message.

    Args:
        continues: true if the message continues an earlier one, whose text is unknown.
    """

    def __init__(self, *, continues: bool = False) -> None:
        self._pending = ""
        self._line = ""  # the line so far
        self._has_stray = False  # the paragraph has a backtick that may not begin a span
        self._before = ""  # the end of the text passed on, in which a label may begin
        self._fence = ""  # the fence of the open code block
        self._is_drawn = False  # some editors render the open code block
        self._continues = continues
        self._certain = not continues  # code can be distinguished from text
        self._tag_end = 0  # the end of the HTML that `_is_harmless` describes
        self._is_harmless = True  # that HTML loads nothing
        self._joining = ""  # characters that would turn the text shown last into a picture
        self._picture_labels: set[str] = set()  # labels that pictures refer to
        self._remote_labels: set[str] = set()  # labels that stand for remote addresses

    def feed(self, text: str) -> str:
        """Add a piece of the message; return the text that can be shown now."""
        if self._joining and text:
            text = f"\\{text}" if text[0] in self._joining else text
            self._joining = ""
        return self._run(self._pending + text, is_end=False)

    def end(self) -> str:
        """Return the text held back. Incomplete constructs are made harmless: more may follow."""
        return self._run(self._pending, is_end=True)

    def _run(self, text: str, *, is_end: bool) -> str:
        passed: list[str] = []
        at = self._tag_end = 0
        if "\r" in text:  # some renderers treat it as the end of a line
            self._certain, self._fence = False, ""
        while at < len(text):
            if self._fence or (self._certain and not self._line):
                step = self._in_code(text, at, is_end=is_end)
                if step is not None:
                    if step == (0, ""):
                        break
                    at += step[0]
                    passed.append(step[1])
                    continue
            special = _SPECIAL.search(text, at)
            if special is None or special.start() > at:
                until = len(text) if special is None else special.start()
                passed.append(self._pass(text[at:until]))
                at = until
                continue
            length, display_text = self._special(text, at, is_end=is_end)
            if not length:
                break
            at += length
            passed.append(display_text)
        self._pending = text[at:]
        return "".join(passed)

    def _pass(self, text: str, display_text: str | None = None) -> str:
        """Record a text that is passed on; return `display_text`, or the text itself."""
        line = self._line + text
        if "\n" in text:
            self._has_stray = self._has_stray and bool(line.strip(" \t\n"))
            if not self._fence and _OTHER_BLOCK.match(line):
                self._certain = False
            line = line.rpartition("\n")[2]
        # Of a very long line only the beginning is stored. The "|" prevents spans in the rest.
        self._line = line if len(line) < _MAX_PENDING else f"{line[:100]}|"
        self._before = (self._before + text)[-1_100:]
        return text if display_text is None else display_text

    # -- code ----------------------------------------------------------------------------------

    def _in_code(self, text: str, at: int, *, is_end: bool) -> tuple[int, str] | None:
        """Pass on lines of a code block.

        Returns:
            The number of characters and the text to show for them; (0, "") if more text is needed
            to decide; None if no code block is open or begins here.
        """
        end = text.find("\n", at) + 1
        if self._fence:
            line = text[at : end or len(text)]
            waits = self._is_drawn or not (self._line or line.strip(" `~\t"))
            if waits and not end and not is_end and len(line) < _MAX_PENDING:
                return 0, ""
            mark, length = self._fence[0], len(self._fence)
            closing = rf" {{0,3}}{mark}{{{length},}}[ \t]*\n?"
            closes = not self._line and re.fullmatch(closing, line) is not None
            self._pass(line)
            if closes:
                self._fence = ""
            return len(line), _ADDRESS.sub("/ /", line) if self._is_drawn else line
        fence = _FENCE.match(text, at)
        if fence is None:
            waits = not end and not is_end and _MAYBE_FENCE.fullmatch(text, at) is not None
            return (0, "") if waits and len(text) - at < _MAX_PENDING else None
        self._fence = fence[1]
        self._is_drawn = _DRAWN.match(fence[0]) is not None
        self._pass(fence[0])
        return len(fence[0]), fence[0]

    def _span(self, text: str, at: int, *, is_end: bool) -> int:
        """Return the length of the code span that begins here; 0 for none, -1 if not known yet."""
        run = len(text) - at - len(text[at:].lstrip("`"))
        if not self._certain or self._has_stray or re.search(r"[<|$\\\[\]]", self._line):
            return 0
        end = text.find("\n", at)
        line = text[at : len(text) if end < 0 else end]
        closing = re.compile(rf"(?<!`)`{{{run}}}(?!`)").search(line, run)
        is_whole = end >= 0 or is_end
        if closing is None or (closing.end() == len(line) and not is_whole):
            return 0 if is_whole or len(line) >= _MAX_PENDING else -1
        if not _SPECIAL_IN_CODE.search(line, run, closing.end()):
            return closing.end()
        if not is_whole:
            return -1 if len(line) < _MAX_PENDING else 0
        return 0 if "|" in line else closing.end()  # the end of a table cell ends a span

    # -- text ----------------------------------------------------------------------------------

    def _special(self, text: str, at: int, *, is_end: bool) -> tuple[int, str]:
        """Pass on text that begins with a special character; (0, "") if more text is needed."""
        match text[at]:
            case "`":
                length = self._span(text, at, is_end=is_end)
                if length < 0:
                    return 0, ""
                run = length or len(text) - at - len(text[at:].lstrip("`"))
                self._has_stray = self._has_stray or not length
                return run, self._pass(text[at : at + run])
            case "\\":
                escapes = 2 if text[at + 1 : at + 2] not in {"<", "\n", ""} else 1
                if at + 1 == len(text) and not is_end:
                    return 0, ""
                return escapes, self._pass(text[at : at + escapes])
            case "!":
                return self._picture(text, at, is_end=is_end)
            case "]":
                return self._definition(text, at, is_end=is_end)
            case "<":
                return self._tag(text, at, is_end=is_end)
            case _:
                return 1, self._pass(text[at])

    def _picture(self, text: str, at: int, *, is_end: bool) -> tuple[int, str]:
        if not text.startswith("[", at + 1):
            if at + 1 == len(text) and not is_end:
                return 0, ""
            self._joining = "[" if at + 1 == len(text) else ""
            return 1, self._pass("!")
        is_remote = self._is_remote(text, at + 2, is_end=is_end)
        if is_remote is None:
            if not is_end and len(text) - at < _MAX_PENDING:
                return 0, ""
            is_remote = True
        if not is_remote:
            return 2, self._pass("![")
        return 2, self._pass("![", "\\![" if self._before.endswith(("!", "]")) else "[")

    def _is_remote(self, text: str, at: int, *, is_end: bool) -> bool | None:
        """Return whether a picture is remote, or None if unknown. Its description begins here."""
        depth, start = 1, at
        for _ in range(_MAX_BRACKETS):
            bracket = _BRACKET.search(text, at)
            if _BLANK_LINE.search(text, at, len(text) if bracket is None else bracket.start()):
                return False  # not a picture
            if bracket is None:
                return None
            at = bracket.end() + (bracket[0] == "\\")
            depth += {"[": 1, "]": -1, "\\": 0}[bracket[0]]
            if not depth:
                break
        else:
            return True
        label = text[start : at - 1]
        follows = text[at : at + 1]
        if follows == "(":
            target = _TARGET.match(text, at + 1)
            if target is None:
                return None
            return _LOCAL.match(target[1] or target[2] or "") is None
        if not follows:
            if not is_end:
                return None
            self._joining = "(["
        labels = {_normal(label)}
        if follows == "[":
            end = text.find("]", at)
            if end < 0:
                return None
            labels.add(_normal(text[at + 1 : end]))
        self._picture_labels |= labels
        return self._continues or not self._remote_labels.isdisjoint(labels)

    def _definition(self, text: str, at: int, *, is_end: bool) -> tuple[int, str]:
        """Pass on the end of a label, which may be a link definition: `[label]: address`."""
        if not text.startswith(":", at + 1):
            if at + 1 == len(text) and not is_end:
                return 0, ""
            return 1, self._pass("]")
        target_match = _DEFINED.match(text, at + 2)
        label_match = _LABEL_BEFORE.search(self._before)
        if label_match is None:
            return 2, self._pass("]:")
        if target_match is None and not is_end and len(text) - at < _MAX_PENDING:
            return 0, ""
        target = (
            (target_match[1] or target_match[2] or "")
            if target_match
            else text[at + 2 :].strip("<> \n")
        )
        label = _normal(label_match[1])
        if _LOCAL.match(target):
            return 2, self._pass("]:")
        self._remote_labels.add(label)
        is_wanted = self._continues or label in self._picture_labels
        return 2, self._pass("]:", "]\\:" if is_wanted else "]:")

    def _tag(self, text: str, at: int, *, is_end: bool) -> tuple[int, str]:
        next_character = text[at + 1 : at + 2]
        if not next_character and not is_end:
            return 0, ""
        if not next_character or not (next_character.isalpha() or next_character in "!/?"):
            return 1, self._pass("<")
        linked = _AUTOLINK.match(text, at)
        if linked is not None:
            return len(linked[0]), self._pass(linked[0])
        is_known = at < self._tag_end and (self._is_harmless or self._tag_end - at > _LONG_TAG)
        if not is_known:
            end = _TAG_END.search(text, at)
            if end is None and not is_end and len(text) - at < _MAX_PENDING:
                return 0, ""
            self._tag_end = len(text) if end is None else end.start() + 1
            tag = text[at : self._tag_end].translate(_IGNORED)
            self._is_harmless = bool(_PLAIN_LINK.fullmatch(tag)) or not _LOADS.search(tag)
        self._certain = False
        return 1, self._pass("<", "<" if self._is_harmless else "&lt;")


def _normal(label: str) -> str:
    """Return a label in normal form for comparison (CommonMark, section 4.7)."""
    return " ".join(label.split()).casefold()
