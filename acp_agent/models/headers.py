"""The headers of a provider's requests, beside those that its package sends by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# As the packages spell those that they send: they replace a header of the same spelling only, and
# would send another one twice.
_SPELLED: Final = {
    name.lower(): name
    for name in (
        "Accept",
        "Authorization",
        "Content-Type",
        "OpenAI-Organization",
        "OpenAI-Project",
        "User-Agent",
        "X-Api-Key",
        "anthropic-beta",
        "anthropic-version",
    )
}


# What these say is no secret, and is found in ordinary text.
_PUBLIC: Final = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-type", "user-agent"}
)


def credentials_in(headers: Mapping[str, str]) -> list[str]:
    """What must not be shown: the values, and what stands in them behind a scheme ("Bearer …")."""
    found = [value for name, value in headers.items() if name.lower() not in _PUBLIC and value]
    return found + [value.partition(" ")[2].strip() for value in found if " " in value]


def spelled(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with the names that the packages know spelled as they spell them."""
    return {_SPELLED.get(name.lower(), name): value for name, value in headers.items()}
