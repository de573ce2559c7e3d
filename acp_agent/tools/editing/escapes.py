"""Variants of an edit without the escapes that only the call has, or with those that it lost."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import msgspec

from acp_agent.errors import ToolError
from acp_agent.tools.editing.matching import STRICT, EditVariant

Transform = Callable[[EditVariant], "EditVariant | list[EditVariant] | None"]


def with_line_end(old: str, new: str) -> str:
    """Return `new` with the line end that it lacks if `old` is whole lines."""
    is_deliberate = new in {"", old[:-1]} or new[-1:].isspace() or not old.strip()
    return f"{new}\n" if old.endswith("\n") and not is_deliberate else new


def rewrite(
    variant: EditVariant, note: str, old: str, new: str, **flags: bool | int | str | None
) -> EditVariant:
    """Return a variant with these texts, and a note that says what was done."""
    return msgspec.structs.replace(
        variant,
        old=old,
        new=with_line_end(old, new),
        notes=(*variant.notes, note),
        **{"distance": 2, **flags},
    )


def shares_raw_lines(old: str, new: str, unescaped: str) -> bool:
    """Return whether `new` as given, but not unescaped, shares lines with the unescaped `old`."""
    lines, plain = set(new.split("\n")), set(unescaped.split("\n"))
    return bool(set(old.split("\n")) & (lines - plain))


_SIGNS = r"!-/:-@\[\]-`{-~"  # ASCII punctuation but the backslash
_QUOTE_ESCAPE = re.compile(rf"\\([{_SIGNS}])")
_ESCAPE = re.compile(rf"\\(r\\n|[{_SIGNS}\\nrt])")
_TAB_ESCAPES = re.compile(r"^([ \t]*)((?:\\t)+)", re.MULTILINE)
_CODE_POINT = re.compile(r"(?<!\\)\\u([0-9a-fA-F]{4})")
_LINE_ESCAPE = re.compile(r"(?<!\\)\\(r|n|t)")
_ESCAPED_CHARS = {"n": "\n", "r": "\r", "t": "\t", "r\\n": "\n"}
_DECODED_CHARS = {"b": "\b", "f": "\f", "r": "\r", "t": "\t", "n": "\n"}
_DECODED_ESCAPE = re.compile(r"[\b\f\r\t\n](?=[a-zA-Z])")
_CONTROL = re.compile(r"[\b]|\f(?=[a-z])")
_LETTERS_AFTER = re.compile(r"[\t\n][a-zA-Z]+")
_STRING_LITERAL = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\\n])*`")
# Literals in which line ends and tabs may be escapes that JSON decoded, by the marks they have.
_BROKEN_LITERALS = tuple(
    re.compile(
        rf"'''.*?'''|\"\"\".*?\"\"\"|(?P<literal>(?P<mark>[{marks}])(?:\\.|(?!(?P=mark))[^\\])*(?P=mark))",
        re.DOTALL,
    )
    for marks in ('"', "\"'", "\"'`")
)
# Languages in which no literal between double quotes contains a line end.
_ONE_LINE_LITERALS = {
    *("c", "cc", "cpp", "cs", "dart", "go", "h", "hpp", "java", "js", "jsx", "kt", "mjs", "py"),
    *("scala", "swift", "ts", "tsx"),
}


_OTHER_CODE = {"css", "html", "md", "php", "rb", "rs", "sql", "toml", "vue", "yaml", "yml"}
_CODE_WITHOUT_ENTITIES = _ONE_LINE_LITERALS | {"bash", "lua", "rs", "sh", "sql", "zsh"}
ENTITY = re.compile("&(?:amp|lt|gt|quot|apos|#39|#x27);")
_RAW_SIGN = re.compile(rf"[<>]|&(?!{ENTITY.pattern[1:]})")
_LONG_LITERAL = re.compile(r"(\"\"\"|\'\'\'|`).*?\1|/\*.*?\*/", re.DOTALL)
_QUOTE_OR_COMMENT = re.compile(r"[\"'`]|//|/\*|^\s*\*|(?:^|\s)(?:#|--)(?:[\s!]|$)")
_MIN_LINE_ESCAPES = 3  # fewer may be meant


def without_json_quotes(variant: EditVariant) -> EditVariant | None:
    """Return both texts without the quotation marks and escapes of a string in JSON."""
    old, new = _parse_json_string(variant.old), _parse_json_string(variant.new)
    return None if old is None or new is None else rewrite(variant, "escapes", old, new)


def _parse_json_string(text: str) -> str | None:
    if not (text.startswith('"') and text.rstrip().endswith('"')):
        return None
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        return None


def _without_quote_escapes(variant: EditVariant) -> EditVariant | None:
    return _unescape_both(variant, _QUOTE_ESCAPE)


def _without_escapes(variant: EditVariant) -> EditVariant | None:
    return _unescape_both(variant, _ESCAPE)


def _unescape_both(variant: EditVariant, escape: re.Pattern[str]) -> EditVariant | None:
    """Read both texts as a JSON decoder would return them."""
    if "escapes" in " ".join(variant.notes) or not escape.search(variant.old):
        return None
    old, new = (escape.sub(_unescape_char, text) for text in (variant.old, variant.new))
    if shares_raw_lines(old, variant.new, new):
        return rewrite(variant, "escapes", old, variant.new)
    if escape is _ESCAPE:
        if old == _QUOTE_ESCAPE.sub(_unescape_char, variant.old) and not _LINE_ESCAPE.search(
            variant.new
        ):
            return None  # the same as with quotes alone
        # A line feed in a string would break it: perhaps only `old` was escaped too much.
        if _has_broken_string(variant.new) or (
            "\n" in variant.new and _LINE_ESCAPE.search(variant.new)
        ):
            return None
    elif _is_ambiguous(variant.new):
        return None
    return rewrite(variant, "escapes", old, new)


def _has_broken_string(text: str) -> bool:
    plain = _QUOTE_ESCAPE.sub(lambda match: match[1], text)
    return any(_LINE_ESCAPE.search(match.group()) for match in _STRING_LITERAL.finditer(plain))


def _is_ambiguous(new: str) -> bool:
    r"""Return whether `new` has quotes with and without escapes, or \n that may be a line end."""
    plain = _QUOTE_ESCAPE.sub("", new)
    if any(char in plain for char in set(_QUOTE_ESCAPE.findall(new)) - {"`", "$"}):
        return True
    unescaped = _QUOTE_ESCAPE.sub(_unescape_char, new)
    return bool(_LINE_ESCAPE.search(_STRING_LITERAL.sub("", unescaped)))


def _unescape_char(match: re.Match[str]) -> str:
    return _ESCAPED_CHARS.get(match[1], match[1])


def _without_tab_escapes(variant: EditVariant) -> EditVariant | None:
    r"""Return the edit with tabs for each `\t` that a line begins with."""
    if not _TAB_ESCAPES.search(variant.old):
        return None
    old, new = (_TAB_ESCAPES.sub(_expand_tabs, text) for text in (variant.old, variant.new))
    return rewrite(variant, "escapes", old, new)


def _expand_tabs(match: re.Match[str]) -> str:
    return match[1] + "\t" * (len(match[2]) // 2)


def _with_lost_escapes(variant: EditVariant) -> list[EditVariant]:
    """Return the edit with escapes for line ends and tabs in literals: JSON was decoded twice."""
    variants: dict[tuple[str, str], EditVariant] = {}
    for pattern in _BROKEN_LITERALS:
        old, old_literals = _escape_literals(variant.old, pattern)
        new, new_literals = _escape_literals(variant.new, pattern)
        is_clear = len(new_literals) <= len(old_literals) or all(
            literal in old_literals or literal[:-1].endswith("\\n") for literal in new_literals
        )
        if old_literals and is_clear:
            variants.setdefault((old, new), rewrite(variant, "escapes", old, new))
    return list(variants.values())


def _escape_literals(text: str, pattern: re.Pattern[str]) -> tuple[str, list[str]]:
    """Return a text without line ends and tabs in literals, and the literals that had some."""
    literals: list[str] = []

    def escape(match: re.Match[str]) -> str:
        literal = match[0].replace("\n", "\\n").replace("\t", "\\t")
        if match["literal"] is None or literal == match[0]:
            return match[0]
        literals.append(literal)
        return literal

    return pattern.sub(escape, text), literals


def restore_lost_escapes(old: str, new: str, display_path: str) -> str:
    r"""Return `new` with `\n` for line ends that break literals, if a literal of `old` has `\n`."""
    if display_path.rpartition(".")[2] not in _ONE_LINE_LITERALS or '\\n"' not in old:
        return new
    pattern = _BROKEN_LITERALS[0]
    restored, literals = _escape_literals(new, pattern)
    is_clear = all(literal.endswith('\\n"') for literal in literals)
    return restored if is_clear and not _escape_literals(old, pattern)[1] else new


def decode_line_escapes(text: str, display_path: str) -> str:
    r"""Return code that has `\n` for all its line ends with line ends; other text unchanged."""
    if "\n" in text or display_path.rpartition(".")[2] not in _ONE_LINE_LITERALS | _OTHER_CODE:
        return text
    count = len(_LINE_ESCAPE.findall(_STRING_LITERAL.sub("", text)))
    if count + text.endswith("\\n") < _MIN_LINE_ESCAPES or _has_broken_string(text):
        return text
    return _ESCAPE.sub(_unescape_char, text)


def decode_entities(text: str, display_path: str) -> str:
    """Return code whose signs are all HTML entities with the signs; other text unchanged.

    An entity must be outside of strings and comments, where a program cannot have one.
    """
    if display_path.rpartition(".")[2] not in _CODE_WITHOUT_ENTITIES or _RAW_SIGN.search(text):
        return text
    lines = _LONG_LITERAL.sub("", text).split("\n")
    is_clear = any(
        ENTITY.search(line) and not _QUOTE_OR_COMMENT.search(ENTITY.sub("", line)) for line in lines
    )
    return ENTITY.sub(unescape_entity, text) if is_clear else text


def unescape_entity(match: re.Match[str]) -> str:
    """Return the sign of an entity."""
    return html.unescape(match[0])


def _without_code_points(variant: EditVariant) -> EditVariant | None:
    r"""Return the edit with characters for escapes such as `\u003c`; the rest is unchanged."""
    if not _CODE_POINT.search(variant.old):
        return None
    old, new = (_CODE_POINT.sub(_decode_code_point, text) for text in (variant.old, variant.new))
    return rewrite(variant, "escapes", old, new)


def _decode_code_point(match: re.Match[str]) -> str:
    number = int(match[1], 16)
    # Controls and halves of a pair stay: they are text of the file.
    return match[0] if number < 0x20 or 0xD800 <= number < 0xE000 else chr(number)


def _with_decoded_backslashes(variant: EditVariant) -> list[EditVariant]:
    r"""Return the edit with the backslashes that JSON decoding removed: `\b` for a backspace.

    Tabs and line ends may be meant as such, so those of `new` must be in `old` too.
    """
    if not _DECODED_ESCAPE.search(variant.old):
        return []
    variants = []
    for chars in (r"\b\f\r", r"\b\f\r\t", r"\b\f\r\t\n"):
        eaten = re.compile(rf"([{chars}])(?=[a-zA-Z])")
        old, new = (eaten.sub(_with_backslash, text) for text in (variant.old, variant.new))
        unclear = set(_LETTERS_AFTER.findall(variant.new)) - set(
            _LETTERS_AFTER.findall(variant.old)
        )
        if old != variant.old and not unclear:
            variants.append(rewrite(variant, "backslashes", old, new, max_level=STRICT))
    return variants


def _with_backslash(match: re.Match[str]) -> str:
    return "\\" + {char: name for name, char in _DECODED_CHARS.items()}[match[1]]


def refuse_decoded_backslash(text: str, *before: str) -> None:
    r"""Refuse a new text with a backspace or form feed where `\b` or `\f` was meant.

    Args:
        before: texts that may have such characters, such as the file as it is.

    Raises:
        ToolError: it has one that no other text has.
    """
    match = _CONTROL.search(text)
    if match is None or any(match[0] in other for other in before):
        return
    line = text.count("\n", 0, match.start()) + 1
    raise ToolError(
        f"the new text has a control character in line {line}",
        advice="JSON reads \\b and \\f as such; write two backslashes for each one that is meant",
    )


ESCAPE_TRANSFORMS: tuple[Transform, ...] = (
    _with_decoded_backslashes,
    _with_lost_escapes,
    _without_code_points,
    _without_tab_escapes,
    _without_quote_escapes,
    _without_escapes,
)
