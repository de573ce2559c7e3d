"""Take credentials out of text before it leaves a tool.

Two kinds are found: known values (the keys this program uses), and keys recognised by their form,
listed in `secret_formats.toml`. A key of an unknown form is not found.

A known value is found as it is, URL-encoded, escaped for JSON or HTML, in hexadecimal, in base64
(at any alignment, wrapped or not), masked (`sk-abc***wxyz`) and, where it is a key and no word, cut
off. Each text is searched for a fixed number of strings a secret, so the time is linear in its
length.
"""

from __future__ import annotations

import base64
import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files as package_files
from urllib.parse import quote

from msgspec import Struct

REPLACEMENT = "[secret]"
_WORD_AT_END = re.compile(r"[A-Za-z0-9_+/=.%\\-]+\Z")
_LONGEST_WORD = 512  # characters; keys recognised by their form are not longer
_LEAST_WORD = 20  # letters and digits; keys of a form are longer, and few words are
_LEAST_MARK = 3  # characters of a mark that tells of a key by itself
_LONGEST_BLOCK = 8_192  # characters of a private key
MIN_SECRET = 8  # characters; a shorter value would be found in ordinary text
_KEY_LENGTH = 16  # from which on a part of a key is recognised
_PIECE = 6  # characters of a part that is looked for
_PIECES = 16  # of one secret at most
_LEAST_BEGINNING = 8  # characters of a key's beginning that give it away
_LEAST_PART = 12  # characters of another part of it that do
_ENCODED_PIECES = 4  # so that one of them is whole where a line break is in the encoded secret
_LEAST_ENCODED = 16
_LEAST_MASKED = 5  # characters of a key on both sides of what masks the rest
_LONGEST_SPELLED = 1_000  # characters of a secret whose escapes are looked for
# `sk-proj-` and the like: every key of the kind begins with it.
_PUBLIC = re.compile(r"(?:[A-Za-z0-9]{1,8}[-_]){0,3}")
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
_MASK = re.compile(r"[*\u2022#xX]{3,}|\.{3,}|\u2026+|(?<!\[)\[(?:REDACTED|redacted)\]")
_MASKS = (
    "***",
    "\u2022\u2022\u2022",
    "###",
    "xxx",
    "XXX",
    "...",
    "\u2026",
    "[REDACTED]",
    "[redacted]",
)
Span = tuple[int, int]
_URL_SAFE = str.maketrans("+/", "-_")
_NAMED: dict[str, Sequence[str]] = {
    "&": ("&amp;",), "<": ("&lt;",), ">": ("&gt;",), '"': ("&quot;",), "'": ("&apos;",),
    "\n": (r"\\\\?n",), "\t": (r"\\\\?t",), "\r": (r"\\\\?r",), " ": (r"\+",),
}  # fmt: skip


class _Format(Struct, frozen=True):
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every credential replaced by `[secret]`.

    Args:
        text: what is about to be shown, sent or stored.
        secrets: values that must not appear; those shorter than `MIN_SECRET` are ignored.
    """
    text = scrub_known(text, secrets)
    for known in _formats():
        if any(mark in text for mark in known.marks):
            text = known.pattern.sub(_replace, text)
    return text


def scrub_known(text: str, secrets: Iterable[str]) -> str:
    """`text` with the known values replaced, and nothing that only looks like a credential.

    Args:
        text: what is about to be shown or stored.
        secrets: values that must not appear; those shorter than `MIN_SECRET` are ignored.
    """
    spans = _known(frozenset(secrets)).spans(text)
    if not spans:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        pieces += (text[done:start], REPLACEMENT)
        done = end
    return "".join((*pieces, text[done:]))


def incomplete_tail(text: str, secrets: Iterable[str]) -> int:
    """How many characters at the end of `text` may be part of a credential that goes on.

    Args:
        text: the beginning of a longer text.
        secrets: the known values.
    """
    known = _known(frozenset(secrets))
    cut = len(text) - known.begun(text)
    word = _WORD_AT_END.search(text, max(0, len(text) - _LONGEST_WORD))
    if word is not None and _may_be_key(word.group()):
        cut = min(cut, word.start())
    begun = text.rfind("-----BEGIN ")
    if len(text) - begun <= _LONGEST_BLOCK and begun >= 0 and "-----END " not in text[begun:]:
        cut = min(cut, begun)
    for start, end in reversed(known.spans(text)):
        if start < cut < end:  # its end may be the beginning of another one
            cut = start
    return len(text) - cut


def _may_be_key(word: str) -> bool:
    """Whether a word that may go on is long, has a mark of a key in it, or ends as one begins."""
    if sum(map(str.isalnum, word)) >= _LEAST_WORD:
        return True
    marks = [mark for known in _formats() for mark in known.marks if len(mark) >= _LEAST_MARK]
    return any(
        mark in word or any(word.endswith(mark[:end]) for end in range(2, len(mark)))
        for mark in marks
    )


@functools.lru_cache(maxsize=16)
def _known(secrets: frozenset[str]) -> KnownSecrets:
    return KnownSecrets(secrets)


def _replace(match: re.Match[str]) -> str:
    if "secret" not in match.re.groupindex:
        return REPLACEMENT
    whole, start = match.group(), match.start()
    return (
        whole[: match.start("secret") - start] + REPLACEMENT + whole[match.end("secret") - start :]
    )


@functools.cache
def _formats() -> tuple[_Format, ...]:
    data = (package_files(__package__) / "secret_formats.toml").read_text("utf-8")
    return tuple(
        _Format(marks=tuple(entry["marks"]), pattern=re.compile(entry["pattern"]))
        for entry in tomllib.loads(data)["format"]
    )


class _Form(Struct, frozen=True):
    """One way in which a secret is written.

    Attributes:
        text: the secret so written.
        pieces: parts of it that are looked for, with where they begin.
        beginning: how many characters of its beginning give it away.
        part: how many of another part do.
        wrapped: whether line breaks in it do not count.
    """

    text: str
    pieces: tuple[tuple[str, int], ...]
    beginning: int
    part: int
    wrapped: bool = False

    def spans(self, text: str) -> Iterator[Span]:
        """Where it stands in `text`, whole or in part."""
        for piece, at in self.pieces:
            found = text.find(piece)
            while found >= 0:
                start, begin = self._back(text, found, at)
                end, finish = self._on(text, found + len(piece), at + len(piece))
                if finish - begin >= (self.part if begin else self.beginning):
                    yield start, end
                found = text.find(piece, max(found + 1, end))

    def _back(self, text: str, found: int, at: int) -> tuple[int, int]:
        """How far back from a piece the text is the secret: the place in both."""
        place = found
        while at and place:
            if text[place - 1] == self.text[at - 1]:
                place, at = place - 1, at - 1
                found = place
            elif self.wrapped and text[place - 1] in "\r\n":
                place -= 1
            else:
                break
        return found, at

    def _on(self, text: str, found: int, at: int) -> tuple[int, int]:
        """How far on from a piece the text is the secret: the place in both."""
        place = found
        while at < len(self.text) and place < len(text):
            if text[place] == self.text[at]:
                place, at = place + 1, at + 1
                found = place
            elif self.wrapped and text[place] in "\r\n":
                place += 1
            else:
                break
        return found, at


class KnownSecrets:
    """What finds some secrets in texts.

    Args:
        values: the secrets; those shorter than `MIN_SECRET` are ignored.

    Attributes:
        longest: characters of the longest form of one.
    """

    def __init__(self, values: frozenset[str]) -> None:
        known = sorted(value for value in values if len(value) >= MIN_SECRET)
        self._keys = [value for value in known if _is_key(value)]
        self._forms = [form for value in known for form in _forms(value)]
        spelled = [_spelled(value) for value in known if _has_escapes(value)]
        self._spelled = re.compile("|".join(spelled)) if spelled else None
        self.longest = max((len(form.text) for form in self._forms), default=0)

    def spans(self, text: str) -> list[Span]:
        """Where secrets stand in `text`: in order, none in another."""
        found = [span for form in self._forms for span in form.spans(text)]
        if self._spelled is not None and any(mark in text for mark in "%\\&"):
            found += (match.span() for match in self._spelled.finditer(text))
        if self._keys and any(mask in text for mask in _MASKS):
            found += (span for mask in _MASK.finditer(text) for span in self._masked(text, mask))
        merged: list[Span] = []
        for start, end in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def begun(self, text: str) -> int:
        """How many characters at the end of `text` may be the beginning of a secret."""
        longest = 0
        for form in self._forms:
            first = form.text[0]
            at = text.find(first, max(0, len(text) - len(form.text) + 1))
            while 0 <= at < len(text) - longest:
                if form.text.startswith(text[at:]):
                    longest = len(text) - at
                at = text.find(first, at + 1)
        return longest

    def _masked(self, text: str, mask: re.Match[str]) -> Iterator[Span]:
        """Where a key stands around a mask: `sk-abc***wxyz`."""
        start, end = mask.span()
        for key in self._keys:
            before = _ends_with_beginning(text[max(0, start - len(key)) : start], key)
            if not before:
                continue
            # The same from behind.
            after = _ends_with_beginning(text[end : end + len(key)][::-1], key[::-1])
            if before + after >= _LEAST_MASKED and (after > 1 or before > _public(key)):
                yield start - before, end + after


def _ends_with_beginning(text: str, key: str) -> int:
    """How many characters at the end of `text` are the beginning of `key`."""
    at = key.rfind(text[-1], 0, len(text)) if text else -1
    while at >= 0:
        if text.endswith(key[: at + 1]):
            return at + 1
        at = key.rfind(text[-1], 0, at)
    return 0


def _public(key: str) -> int:
    """How many characters at the beginning of a key say of which kind it is."""
    found = _PUBLIC.match(key)
    return 0 if found is None else found.end()


def _is_key(value: str) -> bool:
    """Whether not even a part of a value would be written by chance."""
    return (
        len(value) >= _KEY_LENGTH
        and value.isascii()
        and value.isprintable()
        and " " not in value
        and "://" not in value
        and value[0].isalnum()
        and any(sign.isdigit() for sign in value)
        and any(sign.isalpha() for sign in value)
    )


def _forms(value: str) -> Iterator[_Form]:
    if _is_key(value):
        size = max(_PIECE, -(-len(value) // _PIECES))
        pieces = tuple((value[at : at + size], at) for at in range(0, len(value) - size + 1, size))
        yield _Form(
            value, pieces, max(_LEAST_BEGINNING, _public(value) + 3), max(_LEAST_PART, 2 * size - 1)
        )
    else:
        yield _Form(value, ((value, 0),), len(value), len(value))
    raw = value.encode("utf-8", "surrogatepass")
    encoded = {raw.hex(), raw.hex().upper()}
    for shift in range(3):
        # Only the characters that do not depend on what stands around the secret.
        whole = base64.b64encode(b"\0" * shift + raw).decode()
        core = whole[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]
        encoded |= {core, core.translate(_URL_SAFE)}
    for text in sorted(encoded):
        size = max(8, -(-len(text) // _ENCODED_PIECES))
        pieces = tuple((text[at : at + size], at) for at in range(0, len(text) - size + 1, size))
        least = min(len(text), _LEAST_ENCODED)
        yield _Form(text, pieces, least, least, wrapped=True)


def _has_escapes(value: str) -> bool:
    return len(value) <= _LONGEST_SPELLED and _PLAIN.fullmatch(value) is None


def _spelled(value: str) -> str:
    """A pattern of the value with any of its signs escaped as in addresses, JSON or HTML."""
    return "".join(re.escape(sign) if _PLAIN.match(sign) else _escaped(sign) for sign in value)


@functools.cache
def _escaped(sign: str) -> str:
    code = ord(sign)
    ways = [re.escape(sign), rf"\\\\?{re.escape(sign)}", f"(?i:{re.escape(quote(sign, safe=''))})"]
    ways += [rf"\\\\?(?i:u{code:04x})", f"&#0*{code};", f"(?i:&#x0*{code:x};)"]
    ways += _NAMED.get(sign, ())
    return f"(?:{'|'.join(ways)})"
