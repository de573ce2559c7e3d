"""An edit whose words and signs are in the file, with other spaces, quotes or blank lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from acp_agent.tools.editing.adapt import UnclearError, source_lines
from acp_agent.tools.editing.folding import Line, Unit, find_lines, parse
from acp_agent.tools.editing.matching import EditVariant, FoldedText
from acp_agent.tools.editing.nearest import quote_lines

_MAX_TOKENS = 20_000  # tokens of `old` and `new` that are compared
_MAX_COMPARED_TOKENS = 200_000  # tokens of the file at all places with the same signs
_SINGLE_SIGNS = frozenset("()[]{}<>\"'`,;")  # signs that are tokens of their own
_QUOTES = frozenset("\"'")
_QUOTE = re.compile(r"[\"']")
_ESCAPED_QUOTE = re.compile(r"\\(?=[\"'])")
# A text that two kinds of quotation marks may enclose alike: no character, no variable, no escape.
_PLAIN_STRING = re.compile(r"[^$\\`#]{2,}", re.DOTALL)


class Token(NamedTuple):
    """A word, a sign or a line end: the form by which it is compared, and how it is written.

    `gap` is the white space before it, None at the beginning of a line.
    """

    form: str
    raw: str
    gap: str | None


_LINE_END = Token("\n", "\n", None)


def with_file_spacing(file: FoldedText, variant: EditVariant) -> EditVariant | None:
    """Return the edit with the spaces and quotation marks that the file has within its lines.

    None if its words and signs are not in exactly one place, if a string has other spaces there, or
    if a quotation mark of `new` would end a string of the file.
    """
    key = file.folded_compact_key(variant.old)
    if key is None:
        return None
    old_lines = [parse(line) for line in variant.old.split("\n")]
    old = [_tokens(line) for line in old_lines]
    if not (old[0] and old[-1]) or not any(re.search(r"\w", line.form) for line in old_lines):
        return None
    new_lines = [parse(line) for line in variant.new.split("\n")]
    new = [_tokens(line) for line in new_lines]
    if sum(map(len, old)) + sum(map(len, new)) > _MAX_TOKENS:
        return None
    matches = _find_matches(file, key, old, has_indent=bool(old_lines[0].indent))
    if len(matches) != 1:
        return None
    ((number, file_tokens),) = matches
    if variant.line not in {None, number}:
        return None
    if not all(map(_same_strings, old, file_tokens)):
        return None
    respaced = _respaced(_joined(old), _joined(file_tokens), new)
    if respaced is None:
        return None
    # A line that `new` has as `old` has it stays the file's, whatever the signs beside it.
    lines_of_old, lines_of_new = ([_join_tokens(line) for line in lines] for lines in (old, new))
    matcher = difflib.SequenceMatcher(None, lines_of_old, lines_of_new, autojunk=False)
    for start, new_start, size in matcher.get_matching_blocks():
        respaced[new_start : new_start + size] = map(
            _join_tokens, file_tokens[start : start + size]
        )
    indents = [line.indent for line in old_lines]
    return msgspec.structs.replace(
        variant,
        old="\n".join(
            indent + _join_tokens(tokens) + line.trailing
            for indent, tokens, line in zip(indents, file_tokens, old_lines, strict=True)
        ),
        new="\n".join(
            line.indent + text + line.trailing
            for line, text in zip(new_lines, respaced, strict=True)
        ),
        notes=(*variant.notes, "spaces or quotation marks within lines"),
        line=number,
        distance=3,
    )


def _find_matches(
    file: FoldedText, key: str, old: Sequence[Sequence[Token]], *, has_indent: bool
) -> list[tuple[int, list[list[Token]]]]:
    """Return the places with the tokens of `old`: the first line, from 1, and the file's tokens.

    At most two, which are enough to know that there is no single one; none if too much would have
    to be compared.
    """
    matches: list[tuple[int, list[list[Token]]]] = []
    compared = first = counted = 0
    position = file.compact_text.find(key)
    while position >= 0 and len(matches) < 2:
        first += file.compact_text.count("\n", counted, position)
        tokens = [_tokens(line) for line in file.parsed_lines(first, len(old))]
        compared += sum(map(len, tokens))
        if compared > _MAX_COMPARED_TOKENS:
            return []
        matches += [(first + 1, match) for match in _cut(tokens, old, has_indent=has_indent)]
        counted = file.compact_text.find("\n", position)
        position = file.compact_text.find(key, counted) if counted >= 0 else -1
    return matches


def _cut(
    file: Sequence[list[Token]], old: Sequence[Sequence[Token]], *, has_indent: bool
) -> Iterator[list[list[Token]]]:
    """Yield the tokens of the file's lines that `old` covers, in the first two ways it can."""
    forms = [[token.form for token in line] for line in old]
    if len(old) == 1:
        starts = find_lines([token.form for token in file[0]], forms[0])
        for start in islice(starts, 2):
            if not has_indent or start == 0:
                yield [file[0][start : start + len(forms[0])]]
        return
    first = file[0][len(file[0]) - len(forms[0]) :]
    if has_indent and len(first) != len(file[0]):
        return
    lines = [first, *file[1:-1], file[-1][: len(forms[-1])]]
    if [[token.form for token in line] for line in lines] == forms:
        yield lines


def _same_strings(old: Sequence[Token], file: Sequence[Token]) -> bool:
    """Return whether the strings of a line mean the same in `old` and in the file."""
    start: int | None = None  # of the string that is open
    for index, (old_token, token) in enumerate(zip(old, file, strict=True)):
        if start is None:
            start = index if token.form in _QUOTES else None
            continue
        if old_token.gap != token.gap:
            return False
        if token.raw == file[start].raw:
            text = _join_tokens(file[start + 1 : index])
            if old[start].raw != file[start].raw and not _PLAIN_STRING.fullmatch(text):
                return False
            start = None
    return start is None or old[start].raw == file[start].raw


def _respaced(
    old: Sequence[Token], file: Sequence[Token], new: Sequence[Sequence[Token]]
) -> list[str] | None:
    """Return the lines of `new`, without indentation, in the form of the file.

    `old` and `file` have the same tokens. Where `new` has the spaces of `old` between two tokens it
    gets those of the file, and so do the tokens that the two share.
    """
    joined = _joined(new)
    matcher = difflib.SequenceMatcher(
        None, [token.form for token in old], [token.form for token in joined], autojunk=False
    )
    result = list(joined)
    converted: set[int] = set()  # quotation marks that get another form
    quoted: set[int] = set()  # those that only `new` has
    for tag, old_start, old_end, start, end in matcher.get_opcodes():
        if tag == "equal":
            for index, source in zip(range(start, end), range(old_start, old_end), strict=True):
                file_form = file[source].raw if joined[index].raw == old[source].raw else None
                if file_form is not None and file_form != joined[index].raw:
                    result[index] = joined[index]._replace(raw=file_form)
                    converted |= {index} if old[source].form in _QUOTES else set()
                result[index] = result[index]._replace(gap=_gap(joined[index], source, old, file))
        else:
            quoted |= {index for index in range(start, end) if joined[index].form[-1] in _QUOTES}
            if tag == "replace":
                gap = _gap(joined[start], old_start, old, file)
                result[start] = joined[start]._replace(gap=gap)
    if _same_lines(joined, converted) & _same_lines(joined, quoted):
        return None
    lines, first = [], 0
    for tokens in new:
        lines.append(_join_tokens(result[first : first + len(tokens)]))
        first += len(tokens) + 1
    return lines


def _gap(token: Token, source: int, old: Sequence[Token], file: Sequence[Token]) -> str | None:
    """Return the space before a token: the file's if `new` has the one of `old`."""
    return file[source].gap if token.gap == old[source].gap else token.gap


def _same_lines(tokens: Sequence[Token], indices: set[int]) -> set[int]:
    """Return the numbers of the lines that the tokens with these indices are in."""
    ends = [index for index, token in enumerate(tokens) if token.form == "\n"]
    return {sum(end < index for end in ends) for index in indices}


def _joined(lines: Sequence[Sequence[Token]]) -> list[Token]:
    tokens = [token for line in lines for token in (*line, _LINE_END)]
    return tokens[:-1]


def _join_tokens(tokens: Sequence[Token]) -> str:
    text = "".join((token.gap or "") + token.raw for token in tokens)
    return text[len(tokens[0].gap or "") :] if tokens else ""


def _tokens(line: Line) -> list[Token]:
    tokens: list[Token] = []
    gap: str | None = None
    units: list[Unit] = []
    for unit in line.units:
        if units and (unit.form == " " or not _continues(units[-1].form, unit.form)):
            tokens.append(_token(units, gap))
            units, gap = [], ""
        if unit.form == " ":
            gap = unit.raw
        else:
            units.append(unit)
    return [*tokens, _token(units, gap)] if units else tokens


def _token(units: Sequence[Unit], gap: str | None) -> Token:
    form = "".join(unit.form for unit in units).replace('"', "'")
    return Token(form, "".join(unit.raw for unit in units), gap)


def _continues(before: str, after: str) -> bool:
    """Return whether two characters are in one word, or in one sign such as `->`."""
    if before in _SINGLE_SIGNS or after in _SINGLE_SIGNS:
        return False
    return _is_word(before) == _is_word(after)


def _is_word(form: str) -> bool:
    return form.isalnum() or form == "_"


def with_file_escapes(file: FoldedText, variant: EditVariant) -> EditVariant | None:
    """Return the edit with the backslashes that the file has before quotation marks.

    None if its text is not in exactly one place, or if it changes quotation marks or backslashes.
    """
    old, new = variant.old, variant.new
    if not _QUOTE.search(old):
        return None
    plain = _ESCAPED_QUOTE.sub("", file.text)
    start = plain.find(old)
    if start < 0 or plain.find(old, start + 1) >= 0:
        return None
    prefix = _common_length(old, new)
    suffix = _common_length(old[prefix:][::-1], new[prefix:][::-1])
    changed = old[prefix : len(old) - suffix] + new[prefix : len(new) - suffix]
    if _QUOTE.search(changed) or "\\" in changed:
        return None
    # Where each character of the text without these backslashes is in the file.
    dropped = {match.start() for match in _ESCAPED_QUOTE.finditer(file.text)}
    offsets = [at for at in range(len(file.text) + 1) if at not in dropped]
    first, last = offsets[start], offsets[start + len(old) - 1] + 1
    head, tail = (
        offset - (offset - 1 in dropped)
        for offset in (offsets[start + prefix], offsets[start + len(old) - suffix])
    )
    return msgspec.structs.replace(
        variant,
        old=file.text[first:last],
        new=file.text[first:head] + new[prefix : len(new) - suffix] + file.text[tail:last],
        notes=(*variant.notes, "backslashes"),
        distance=3,
    )


def _common_length(first: str, second: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def with_file_blank_lines(file: FoldedText, variant: EditVariant) -> EditVariant | None:
    """Return the edit with the blank lines of the file.

    None if its own lines are not there in one place, or end with blank ones.

    Raises:
        UnclearError: `new` changes lines where `old` has other blank lines than the file.
    """
    lines = variant.old.split("\n")
    if len(lines) < 2 or file.line_forms[lines[0]] not in file.forms:
        return None
    forms = [file.line_forms[line] for line in lines]
    old_forms = list(filter(None, forms))
    if len(old_forms) < 2 or not (forms[0] and forms[-1]):
        return None
    file_indices = [number for number, form in enumerate(file.forms) if form]
    file_forms = [file.forms[number] for number in file_indices]
    starts = list(islice(find_lines(file_forms, old_forms), 2))
    if len(starts) != 1:
        return None
    old = [parse(line) for line in lines]
    old_indices = _nonblank_indices(old)
    numbers = file_indices[starts[0] : starts[0] + len(old_forms)]
    gaps = _gaps(numbers)
    spaced_lines = [
        lines[index] + "\n" * gap for index, gap in zip(old_indices, (*gaps, 0), strict=True)
    ]
    in_file = "\n".join(spaced_lines)
    new = _new_with_gaps(old, variant.new.split("\n"), gaps)
    if new is None:
        raise UnclearError(
            "`old` has other blank lines than the file, where `new` changes lines",
            advice=f"give `old` as it is; {quote_lines(file.lines, numbers[0], in_file)}",
        )
    return msgspec.structs.replace(
        variant,
        old=in_file,
        new=new,
        notes=(*variant.notes, "blank lines"),
        starts_line=True,
        ends_line=True,
        line=numbers[0] + 1,
        distance=2,
    )


def _new_with_gaps(old: Sequence[Line], new: Sequence[str], gaps: Sequence[int]) -> str | None:
    """`new` with the blank lines of the file between lines that it leaves together.

    Where it changes lines it has those of the file already; None if it has not.
    """
    parsed = [parse(line) for line in new]
    old_indices = _nonblank_indices(old)
    old_gaps = _gaps(old_indices)
    order = {index: number for number, index in enumerate(old_indices)}
    sources = {
        index: order[source] for index, source in source_lines(old, parsed) if source in order
    }
    # Both ends count as shared lines.
    shared = [(-1, -1), *sorted(sources.items()), (len(new), len(old_indices))]
    result = list(new)
    for (before, first), (after, last) in reversed(list(pairwise(shared))):
        between = range(max(first, 0), min(last, len(gaps)))
        if all(gaps[number] == old_gaps[number] for number in between):
            continue
        blank = sum(not line.strip() for line in new[before + 1 : after])
        is_split = last != first + 1 or blank != after - before - 1
        if not is_split and blank == old_gaps[first]:
            result[before + 1 : after] = [""] * gaps[first]
        elif is_split and blank != sum(gaps[number] for number in between):
            return None
    return "\n".join(result)


def _nonblank_indices(lines: Sequence[Line]) -> list[int]:
    """Return the indices of the lines that are not blank."""
    return [index for index, line in enumerate(lines) if line.units]


def _gaps(numbers: Sequence[int]) -> list[int]:
    """Return how many lines are between the lines with these numbers."""
    return [after - before - 1 for before, after in pairwise(numbers)]
