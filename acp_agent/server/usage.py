"""What a turn took, counted as the protocol counts."""

from __future__ import annotations

from typing import Any

from acp_agent.events import Usage


def token_counts(usage: Usage) -> dict[str, Any]:
    """The fields of the protocol's `Usage`, of which each version has a type of its own.

    The schema calls the total the sum of all types of tokens, so no token may be of two types: what
    was read from a cache or written to it is not counted as input as well. Only the thoughts are
    part of another number, the output, as every provider bills them. What is zero is left out: it
    may be that the provider does not count it apart.

    Source: Agent Client Protocol v1 and v2 (unstable), Usage; the RFD "End-Turn Token Usage".
    """
    counts = {
        "total_tokens": usage.input + usage.output,
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "output_tokens": usage.output,
    }
    parts = {
        "thought_tokens": usage.reasoning,
        "cached_read_tokens": usage.cache_read,
        "cached_write_tokens": usage.cache_write,
    }
    return counts | {name: count for name, count in parts.items() if count}
