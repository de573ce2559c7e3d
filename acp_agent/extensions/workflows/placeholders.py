"""`${inputs.x}`, `${steps.id.output}` and `${item}` in the texts of a workflow.

`${{ inputs.x }}` means the same. Inserted values are not expanded again, and anything that is not a
reference, such as `${HOME}`, is left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from acp_agent.extensions.workflows.expressions import Reference

_PLACEHOLDER = re.compile(
    r"\$\{\{\s*([\w.-]+)\s*\}\}|\$\{\s*((?:inputs?|steps?|trigger)\.[\w.-]+|item)\s*\}"
)


def placeholders(text: str) -> Iterator[Reference]:
    """Yield the references in a text."""
    for match in _PLACEHOLDER.finditer(text):
        yield _reference(match)


def fill_placeholders(text: str, value: Callable[[Reference], str]) -> str:
    """Return a text with its references replaced by their values."""
    return _PLACEHOLDER.sub(lambda match: value(_reference(match)), text)


def _reference(match: re.Match[str]) -> Reference:
    return Reference(tuple((match[1] or match[2]).split(".")))
