"""Variants of the texts of a call: without copied line numbers, markers and escapes.

A variant removes from `old` what no file has, and the same from `new`. It counts only if the rest
of `old` is in the file, in one place. If `new` could be read in two ways, there is no variant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from acp_agent.tools.editing.escapes import (
    ENTITY,
    ESCAPE_TRANSFORMS,
    Transform,
    rewrite,
    shares_raw_lines,
    unescape_entity,
    with_line_end,
    without_json_quotes,
)
from acp_agent.tools.editing.folding import fold
from acp_agent.tools.editing.matching import STRICT, EditVariant
from acp_agent.tools.editing.new_text import PROSE_SUFFIXES, split_tags

# What encloses a text: a fence, the marks of a search and replace block.
_FENCES = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\s*(?P<fence>```+|~~~+)[^\n`]*\n(?P<text>.*?)\n?[ \t]*(?P=fence)\s*",
        r"\s*[<-]{5,9} ?SEARCH>?\n(?P<text>.*?)\n?(?:={5,9}\s*)?",
        r"(?:\s*={5,9}\n)?(?P<text>.*?)\n?[>+]{5,9} ?REPLACE>?\s*",
        r"(?P<fence>`)(?P<text>[^`\n]+)`\n?",
    )
)
_CLOSERS = ("}", ")", "]", "</")
_LONG_STRING = re.compile(r"\"\"\"|\'\'\'|`|<<")
_LEAVES = re.compile(r"(?:return|break|continue|raise|throw|goto|yield)\b")
_BRANCH = re.compile(r"(?:el(?:se|if|sif|seif)|except|finally|catch|case|when|end|fi|done|esac)\b")
_DIRECTIVE = re.compile(r"#\s*(?:if|el|end|define|undef|include|pragma|region)")
# What follows a text that is a part of a line, if the end of that line was not forgotten.
_CLOSING = r"[;,)\]}:]|\s*(?://|#|--)"
_CHAINED = r"|\??\.[a-zA-Z_]"  # a method or field of what the last line ends with
# The number of a line as this and other agents show it, the signs after it, and its text.
_NUMBERS = tuple(
    re.compile(rf"[ ]*[\[(]?L?(\d+){sign}(.*)", re.DOTALL)
    for sign in (
        *(r"\t", r"[ ]?\u2192", r"[ ]?\u2192\t", r"[ ]?[|\u2502][ ]", r"[ ]?[|\u2502]"),
        *(r":[ ]", "[:-]", r"[ ]?-[ ]", r"[.)\]]:?[ ]", r"[.)\]]:?"),
    )
)
_NUMBER_START = re.compile(r"\s*[\[(]?L?\d")
_CERTAIN_PATTERNS = 3  # of these patterns; the others may be what a line says
_ESCAPED_ENTITY = re.compile(r"&amp;[#\w]+;")
_DASH = "\u2014"
_MAX_VARIANTS = 24  # of one call


def edit_variants(old: str, new: str) -> list[EditVariant]:
    """Return all variants of an edit whose texts have LF line endings, the plainest first."""
    variants = [EditVariant(old=old, new=with_line_end(old, new))]
    for transform in _TRANSFORMS:
        for variant in list(variants):
            outcome = transform(variant)
            new_variants = outcome if isinstance(outcome, list) else [outcome] if outcome else []
            variants.extend(new_variants[: _MAX_VARIANTS - len(variants)])
    return sorted(variants, key=lambda variant: len(variant.notes))


def begins_with_line_end(text: str, offsets: Sequence[int], old: str, new: str) -> bool:
    """Return whether `old` is whole lines after a line end without which lines would join."""
    body = old[1:]
    if old[:1] != "\n" or not body.strip() or new[:1] in {"", "\n"} or not new.strip():
        return False
    indent = _leading_space(body)
    has_whole_lines = old.endswith("\n") and new.endswith("\n")
    return (
        (bool(indent) or has_whole_lines)
        and _leading_space(new) == indent
        and all(at and text[at - 1] != "\n" for at in offsets)
    )


def deleted_line_start(text: str, at: int, old: str) -> int | None:
    """Return where the lines begin whose text `old` is, without the last line end; else None.

    A model that deletes them means no blank line in their place.
    """
    start = text.rfind("\n", 0, at) + 1
    has_end = old.endswith("\n") or text[at + len(old) : at + len(old) + 1] != "\n"
    return None if has_end or not old.strip() or text[start:at].strip() else start


def _leading_space(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def begins_in_indentation(text: str, at: int, old: str, new: str) -> bool:
    """Return whether a line of `old` with too little indentation becomes several lines.

    If replaced exactly, only the first of them would get the rest of the indentation.
    """
    line_start = text.rfind("\n", 0, at) + 1
    if old[:1] not in (" ", "\t") or at == line_start or text[line_start:at].strip():
        return False
    if "\n" in old.strip("\n") or "\n" not in new.strip("\n"):
        return False
    shallow = len(old) - len(old.lstrip())
    depths = [len(line) - len(line.lstrip()) for line in new.split("\n")[1:] if line.strip()]
    # Lines as deep as the file's line were written with it in sight.
    return min(depths) < at - line_start + shallow or any(
        depth - shallow in (2, 4, 8) for depth in depths
    )


def indented_block(text: str, offsets: Sequence[int], old: str, new: str, display_path: str) -> str:
    """Return `new` with the indentation of the file's line, if it is a block that lacks it.

    That is a block in brackets or tags whose first and last line begin without indentation, for a
    part of a line, or lines without indentation for a whole line, except in prose.
    """
    at, body = offsets[0], old.removesuffix("\n")
    indent = text[text.rfind("\n", 0, at) + 1 : at]
    first, *inner = new.strip("\n").split("\n")
    if not indent or indent.strip() or "\n" in body or old[:1].isspace() or not inner:
        return new
    has_ends = first.rstrip().endswith(("{", "(", "[", ">")) and inner[-1].startswith(_CLOSERS)
    depths = [len(_leading_space(line)) for line in inner if line.strip()]
    is_line = text[at + len(body) : at + len(body) + 1] in {"\n", ""}
    suffix = PurePath(display_path).suffix.lower()
    is_prose = bool(suffix) and suffix in PROSE_SUFFIXES
    is_dedented = is_line and not is_prose and _lacks_indentation([first, *inner], len(indent))
    if len(offsets) > 1 or not (is_dedented or (has_ends and body == old and all(depths[:-1]))):
        return new
    unit = min(filter(None, depths), default=0)
    with_tabs = (
        "\t" in indent and "\t" not in new and not any(depth % (unit or 1) for depth in depths)
    )
    lines = [
        "\t" * (len(_leading_space(line)) // (unit or 1)) + line.lstrip(" ") if with_tabs else line
        for line in inner
    ]
    block = "\n".join([first, *(indent + line if line.strip() else line for line in lines)])
    return block + new[len(new.rstrip("\n")) :]


def _lacks_indentation(lines: Sequence[str], depth: int) -> bool:
    """Return whether lines were written at the margin that belong to a line at this depth.

    Not if one may be meant for the margin: text of a long string, a directive of C, a branch or the
    end of what is around it, what comes after a blank line or where a function was left.
    """
    first, *inner = lines
    if not all(map(str.strip, inner)) or _LONG_STRING.search("\n".join(lines)):
        return False
    opens = first.rstrip().endswith((":", "{", "(", "["))
    at_margin = [line for line in inner if not line[0].isspace()]
    if not opens and (_LEAVES.match(first) or any(map(_BRANCH.match, at_margin))):
        return False
    brackets = 0
    for char in "".join(lines):
        brackets += (char in "([{") - (char in ")]}")
        if brackets < 0:
            return False
    if at_margin:
        return not any(map(_DIRECTIVE.match, at_margin))
    return first.rstrip().endswith(":") and len(_leading_space(inner[0])) <= depth


def differs_only_in_form(variant: EditVariant) -> bool:
    """Return whether `new` has the same words as `old`, and differs only in form."""
    return _folded_lines(variant.old) == _folded_lines(variant.new)


def _folded_lines(text: str) -> list[str]:
    return [form for form in map(fold, text.split("\n")) if form]


def _without_fence(variant: EditVariant) -> EditVariant | None:
    old, new = _fenced_text(variant.old), _fenced_text(variant.new)
    opening = variant.old.strip().split("\n")[0]
    if old is None or (new is None and opening in variant.new):
        return None  # what encloses `old` is text of the file, for `new` keeps it
    text = variant.new.removesuffix("\n") if new is None else new
    return rewrite(variant, "what encloses it", old, text, starts_line=True, ends_line=True)


def _fenced_text(text: str) -> str | None:
    """Return the text within a fence or marks; None if there are none."""
    match = next((match for pattern in _FENCES if (match := pattern.fullmatch(text))), None)
    return match["text"] if match else None


def _without_tags(variant: EditVariant) -> EditVariant | None:
    """Return the edit without tags of a call around or after the texts, and their line ends."""
    (old, names), (new, _) = split_tags(variant.old), split_tags(variant.new)
    if not old or not names:
        return None
    new = new if new == variant.new else new.removesuffix("\n")
    return rewrite(variant, "what encloses it", old.removesuffix("\n"), new)


def _without_entities(variant: EditVariant) -> EditVariant | None:
    """Return the edit with HTML entities decoded once: `&amp;nbsp;` is an entity of the file."""
    if not _ESCAPED_ENTITY.search(variant.old):
        return None
    old, new = (ENTITY.sub(unescape_entity, text) for text in (variant.old, variant.new))
    if shares_raw_lines(old, variant.new, new):
        new = variant.new
    return rewrite(variant, "HTML entities", old, new)


def _with_double_hyphens(variant: EditVariant) -> EditVariant | None:
    """Return the edit with two hyphens for a dash."""
    if _DASH not in variant.old:
        return None
    old, new = (text.replace(_DASH, "--") for text in (variant.old, variant.new))
    return rewrite(variant, "dashes", old, new)


def _without_numbers(variant: EditVariant) -> list[EditVariant]:
    variants: list[EditVariant] = []
    end = "\n" if variant.old.endswith("\n") else ""
    text = variant.old.removesuffix("\n")
    for index, pattern in enumerate(_NUMBERS):
        is_certain = index < _CERTAIN_PATTERNS
        old = _strip_numbers(text, pattern, all_lines=True)
        if old is None:
            continue
        new = _new_without_numbers(variant.new, old, pattern, all_lines=not is_certain)
        if new is None:
            continue
        first_match = pattern.match(text)
        line = int(first_match[1]) if first_match and not is_certain and "\n" not in text else None
        variants.append(
            rewrite(
                variant, "line numbers", old + end, new, starts_line=True, ends_line=True, line=line
            )
        )
    return variants


def _new_without_numbers(
    new: str, old: str, pattern: re.Pattern[str], *, all_lines: bool
) -> str | None:
    """Return `new` without line numbers, if it has any; None if that is uncertain."""
    lines = new.split("\n")
    numbered = [line for line in lines if pattern.fullmatch(line)]
    if not numbered:
        return new
    if set(old.split("\n")) & {line for line in lines if line.strip()}:
        return None  # a line of `old` is here without its number: the others may be text
    stripped = _strip_numbers(new, pattern, all_lines=all_lines)
    if stripped is None or len(numbered) == len([line for line in lines if line.strip()]):
        return stripped
    return stripped if set(old.split("\n")) & set(stripped.split("\n")) - {""} else None


def _strip_numbers(text: str, pattern: re.Pattern[str], *, all_lines: bool) -> str | None:
    """Return the lines without their numbers.

    None if those do not ascend, or are missing: from a line if `all_lines` is set, else from the
    first, after which numbers are data rather than the numbers of lines.
    """
    if not _NUMBER_START.match(text):
        return None
    last_number, result, numbered = -1, [], 0
    for line in text.split("\n"):
        match = pattern.fullmatch(line) or pattern.fullmatch(f"{line} ")
        if match is None:
            if line.strip() and (all_lines or not numbered):
                return None
            result.append(line)
            continue
        number = int(match[1])
        if number < last_number or (all_lines and number == last_number):
            return None
        last_number = number
        numbered += 1
        result.append(match[2])
    return "\n".join(result) if numbered else None


def _without_markers(variant: EditVariant) -> EditVariant | None:
    old_lines, new_lines = variant.old.split("\n"), variant.new.split("\n")
    old_signs, new_signs = _signs(old_lines), _signs(new_lines)
    if old_signs is None or new_signs is None:
        return None
    is_diff = (
        old_signs <= {"-", " "}
        and new_signs <= {"+", " "}
        and bool("-" in old_signs or "+" in new_signs)
    )
    if not (is_diff or old_signs == new_signs == {"+"}):
        return None
    old, new = ("\n".join(line[1:] for line in lines) for lines in (old_lines, new_lines))
    return rewrite(
        variant, "diff markers", old, new, starts_line=True, ends_line=True, max_level=STRICT
    )


def _signs(lines: list[str]) -> set[str] | None:
    """Return the signs that the lines begin with; None if a line begins with another character."""
    signs = {line[0] for line in lines if line}
    return signs if signs <= {"+", "-", " "} else None


def _without_blank_lines(variant: EditVariant) -> EditVariant | None:
    """Remove blank lines around, and the last line end: the file may end before it."""
    old = variant.old.strip("\n")
    lines = old.split("\n")
    while len(lines) > 1 and not lines[0].strip():
        del lines[0]
    while len(lines) > 1 and not lines[-1].strip():
        del lines[-1]
    core = "\n".join(lines)
    if core == variant.old or not core.strip():
        return None
    at = variant.old.index(core)
    before, after = variant.old[:at].count("\n"), variant.old[at + len(core) :].count("\n")
    new = _strip_blank(variant.new, before, after)
    return rewrite(
        variant,
        "blank lines around it" if before or after > 1 else "the last line end",
        core,
        new,
        starts_line=variant.starts_line or bool(before),
        ends_line=variant.ends_line or bool(after),
        distance=max(variant.distance, 1),
    )


def _within_line(variant: EditVariant) -> EditVariant | None:
    """Return the edit without the last line ends: a block of a diff may end within a line."""
    old, new = variant.old.removesuffix("\n"), variant.new.removesuffix("\n")
    if old == variant.old or new == variant.new or not old.strip() or old.endswith("\n"):
        return None
    is_block = "\n" in old
    is_unchanged = is_block and old.rpartition("\n")[2] == new.rpartition("\n")[2]
    is_continued = is_block and old[-1] == new[-1:] and old.endswith((")", "]"))
    following = _CLOSING + _CHAINED if is_continued else _CLOSING
    return rewrite(
        variant,
        "the last line end",
        old,
        new,
        max_level=STRICT,
        distance=3,
        following="" if is_unchanged else following,
    )


def _strip_blank(text: str, before: int, after: int) -> str:
    """Return a text without up to so many blank lines at its ends."""
    lines = text.split("\n")
    while before and len(lines) > 1 and not lines[0].strip():
        del lines[0]
        before -= 1
    while after and len(lines) > 1 and not lines[-1].strip():
        del lines[-1]
        after -= 1
    return "\n".join(lines)


# Escapes come first: line numbers and markers need separate lines.
_TRANSFORMS: tuple[Transform, ...] = (
    without_json_quotes,
    _without_entities,
    _with_double_hyphens,
    *ESCAPE_TRANSFORMS,
    _without_tags,
    _without_fence,
    _without_numbers,
    _without_markers,
    _without_blank_lines,
    _within_line,
)
