"""Lines of a new text that the file has next to it as well."""

from __future__ import annotations

_MAX_LINES = 50  # that are compared
_MIN_LENGTH = 8  # characters of such lines; a bracket alone is no sign of a mistake


def repeated_lines(text: str, start: int, end: int, new: str) -> str:
    """Return the lines next to a replaced part that its new text repeats; "" if it repeats none.

    A model that shows the lines around a change in `new` may have left them out of `old`.

    Args:
        start: where the part begins, and `end` where it ends.
    """
    old_lines = text[start:end].strip("\n").split("\n")
    new_lines = new.strip("\n").split("\n")
    size = min(len(new_lines), _MAX_LINES + 1)
    before = text[:start].removesuffix("\n").rsplit("\n", size)[-size:]
    after = text[end:].removeprefix("\n").split("\n", size)[:size]
    for count in range(size - 1, 0, -1):
        for lines, neighbours, replaced in (
            (new_lines[:count], before[-count:], old_lines[:count]),
            (new_lines[-count:], after[:count], old_lines[-count:]),
        ):
            repeated = "\n".join(lines).strip()
            if lines == neighbours != replaced and len(repeated) >= _MIN_LENGTH:
                return repeated
    return ""
