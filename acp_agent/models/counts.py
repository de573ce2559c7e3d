"""What a provider counted of a request, made sound before anything is worked out from it."""

from __future__ import annotations

from acp_agent.events import Usage

_MOST = 100_000_000  # tokens; no model takes or gives as many in one request
Count = int | float | None


def counted(
    sent: Count,
    answered: Count,
    *,
    cache_read: Count = None,
    cache_write: Count = None,
    reasoning: Count = None,
    total: Count = None,
) -> Usage:
    """The usage that a provider's counts say; None is one that it did not tell.

    A number that cannot be one of tokens counts as not told. Where more is cached than sent, the
    service counts that beside the rest, and where the total has room for it beside the answer, the
    reasoning: xAI does so, and Gemini over its compatible endpoint (docs.x.ai, "Consumption and
    rate limits": reasoning counts to total_tokens, not to completion_tokens).
    """
    given, answer = _number(sent), _number(answered)
    read, written, thought = _number(cache_read), _number(cache_write), _number(reasoning)
    if thought > answer or (thought and _number(total) >= given + answer + thought):
        answer += thought
    if read + written > given:
        given += read + written
    return Usage(
        input=given, output=answer, cache_read=read, cache_write=written, reasoning=thought
    )


def _number(count: Count) -> int:
    return 0 if count is None or not 0 <= count <= _MOST else int(count)
