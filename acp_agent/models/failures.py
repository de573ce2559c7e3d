"""What went wrong at a provider, as one line that a person understands and never with a key in it.

Covers HTTP statuses, errors that arrive inside a stream, and what the connection raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from acp_agent.models import retry_delay
from acp_agent.models.base import Failed, FailureKind
from acp_agent.models.headers import credentials_in
from acp_agent.models.providers import Provider
from acp_agent.models.sse import BadStreamError

RETRYABLE: frozenset[FailureKind] = frozenset(
    {"connection", "timeout", "rate_limit", "overloaded", "server", "empty", "malformed"}
)

_SHORTEST_SECRET = 8  # characters; shorter ones are found in ordinary words
_DETAIL_LIMIT = 300  # characters of the provider's own words

_BY_STATUS: dict[int, FailureKind] = {
    401: "auth", 402: "quota", 403: "auth", 404: "not_found", 408: "timeout", 409: "server",
    413: "overflow", 425: "server", 429: "rate_limit", 503: "overloaded", 504: "timeout",
    529: "overloaded",
}  # fmt: skip

# The words with which providers say more than their status does, in lower case.
_BY_WORD: dict[str, FailureKind] = {
    "authentication_error": "auth", "permission_error": "auth", "invalid_api_key": "auth",
    "billing_error": "quota", "insufficient_quota": "quota", "insufficient balance": "quota",
    "insufficient_balance": "quota", "exceeded your current quota": "quota", "余额不足": "quota",
    "arrearage": "quota",
    "rate_limit_error": "rate_limit", "rate_limit_exceeded": "rate_limit",
    "overloaded_error": "overloaded", "engine_overloaded": "overloaded",
    "server_is_overloaded": "overloaded", "slow_down": "overloaded",
    "timeout_error": "timeout", "api_error": "server", "server_error": "server",
    "not_found_error": "not_found", "model_not_found": "not_found",
    "invalid_request_error": "bad_request",
    # Google's, which says 400 to a bad key.
    "api key not valid": "auth", "api_key_invalid": "auth", "unauthenticated": "auth",
    "permission_denied": "auth", "resource_exhausted": "rate_limit",
    "deadline_exceeded": "timeout", "invalid_argument": "bad_request",
    # Amazon's, in the middle of a stream.
    "throttlingexception": "rate_limit", "serviceunavailableexception": "overloaded",
    "modeltimeoutexception": "timeout", "internalserverexception": "server",
    "modelstreamerrorexception": "server", "validationexception": "bad_request",
}  # fmt: skip
_UNAVAILABLE = "UNAVAILABLE"  # too common a word to be looked for in what is said

_OVERFLOW = re.compile(
    r"context[_ ](length|window|size|limit)|maximum context|exceed_context_size"
    r"|(prompt|input|input length|token length) (is )?too (long|large)|request_too_large"
    r"|too many (input )?tokens|range of input length|reduce the length of the (messages|prompt)"
    r"|model token limit"  # Kimi; a mere "token limit" may be that of a day
    r"|token count\b.*\bexceeds the (maximum number of tokens|limit)"  # Gemini and others
    r"|token count is \d+ but (the )?model only supports"  # Vertex AI
    r"|maximum (prompt|model|input) length|prompt (超长|exceeds max)"  # xAI, vLLM, Zhipu
    r"|input (length|tokens)\b.{0,60}\bmaximum (allowed )?(input )?length"  # SGLang, Poolside, Nova
    r"|`inputs` (tokens|must have less than)",  # Text Generation Inference
    re.IGNORECASE,
)
# What the request says is not allowed: OpenAI and Azure, Alibaba, DeepSeek, Zhipu.
_REFUSED = re.compile(
    r"content_filter|invalid_prompt|\w+_policy(_violation)?|data_?inspection_?failed"
    r"|content exists risk|1301",
    re.IGNORECASE,
)
# Codes of OpenAI's for what asking again cannot change (`ResponseError.code` of its API).
_UNCHANGING = re.compile(r"data_residency_mismatch|\w*image\w*")
_LIKE_A_KEY = re.compile(r"\b(?:(?:sk|pk|rk|gsk|key)[-_]|AIza)[\w*.-]{12,}")


class _Problem(msgspec.Struct, frozen=True):
    message: str | None = None
    type: str | None = None
    code: str | int | float | None = None
    status: str | int | None = None  # Google's word for it (google.rpc.Code)
    details: object = None  # Google's
    metadata: object = None  # OpenRouter's: what the service behind it said, as `raw`


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Problem | str | None = None
    message: str | None = None
    detail: str | None = None


def from_status(
    provider: Provider, status: int, headers: Mapping[str, str], body: bytes, *, model: str
) -> Failed:
    """The failure that an HTTP answer with an error status tells of."""
    problem = _problem(body)
    said = problem.message or ""
    if 300 <= status < 400:  # not followed: the keys and the conversation are for this host only
        target = headers.get("location", "another address")
        said = f"it leads to {target}; set that as the provider's base_url if it is right"
    kind = _BY_STATUS.get(status) or ("server" if status >= 500 else "bad_request")
    if status in {400, 403, 404, 413, 422, 429}:
        kind = _worded(problem, kind)
    elif status == 500 and _OVERFLOW.search(said):  # llama.cpp's
        kind = "overflow"
    return Failed(
        kind=kind,
        status=status,
        message=_line(provider, kind, status, said, model=model),
        retry_after=_delay(problem, kind, retry_delay.from_headers(headers)),
    )


def from_page(provider: Provider, body: bytes, *, model: str) -> Failed:
    """The failure that a page tells of where a stream was to come, though the status is 200."""
    problem = _problem(body)
    if not problem.message:
        what = (
            "it sent a page where a stream of events was to come; check its address "
            f"{provider.address}, which often ends in /v1"
        )
        return malformed(provider, what)
    return from_event(provider, msgspec.to_builtins(problem), model=model)


def from_event(provider: Provider, problem: object, *, model: str) -> Failed:
    """The failure that an error inside a stream tells of; `problem` is the JSON of `error`."""
    try:
        told = msgspec.convert(problem, _Problem)
    except msgspec.ValidationError:
        told = _Problem(message=str(problem))
    told = _at_its_source(told)
    status = int(told.code) if isinstance(told.code, (int, float)) else None
    if isinstance(told.code, str) and told.code.isdecimal() and len(told.code) == 3:
        status = int(told.code)
    default = _BY_STATUS.get(status or 0) or "server"
    kind = _worded(told, default)
    return Failed(
        kind=kind,
        status=status,
        message=_line(provider, kind, status, told.message or "", model=model),
        retry_after=_delay(told, kind),
    )


def from_exception(provider: Provider, error: Exception, *, model: str, begun: bool) -> Failed:
    """The failure behind an exception of the SDK, of the HTTP client or of a decoder.

    `begun` says whether the answer had begun.
    """
    import httpx2  # noqa: PLC0415 - loaded with the SDK, never before

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, httpx2.TimeoutException):
            kind: FailureKind = "timeout"
            return Failed(kind=kind, message=_line(provider, kind, None, "", model=model))
        if _is_unsendable(cause):
            return unsendable(provider)
        if isinstance(cause, httpx2.TransportError):
            if begun:
                return cut(provider.name)
            kind = "connection"
            return Failed(kind=kind, message=_line(provider, kind, None, str(cause), model=model))
        if isinstance(cause, (msgspec.MsgspecError, UnicodeDecodeError, BadStreamError)):
            return malformed(provider, "an event of its answer cannot be read")
        if isinstance(cause, httpx2.DecodingError):
            return malformed(provider, "its answer cannot be decompressed")
        cause = cause.__cause__ or cause.__context__
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    if isinstance(status, int) and isinstance(response, httpx2.Response):
        body = response.content if response.is_stream_consumed else b""
        return from_status(provider, status, response.headers, body, model=model)
    said = f"{type(error).__name__}: {error}"
    return Failed(
        kind="bad_request", message=_line(provider, "bad_request", None, said, model=model)
    )


def unsendable(provider: Provider) -> Failed:
    """A header has what no header can carry. It may be the key: neither is ever quoted."""
    again = f"Set {provider.key_env[0]} again, or run" if provider.key_env else "Run"
    return Failed(
        kind="bad_request",
        message=f"{provider.name} cannot be asked: its key or one of its headers has line breaks "
        f"or unusual characters. {again} `acp-agent login {provider.id}`.",
    )


def malformed(provider: Provider, what: str) -> Failed:
    """The answer is not what the API promises."""
    return Failed(kind="malformed", message=f"{provider.name} answered badly: {what}.")


def cut(provider: str) -> Failed:
    """The stream ended without an end of the answer."""
    return Failed(
        kind="connection",
        message=f"The connection to {provider} broke in the middle of the answer. Try again.",
    )


def empty(provider: Provider, model: str) -> Failed:
    """The model said nothing and called nothing."""
    return Failed(kind="empty", message=f"{provider.name} sent an empty answer from {model}.")


def timed_out(provider: str, seconds: float, *, begun: bool) -> Failed:
    """The answer did not begin, or paused, for longer than allowed."""
    what = (
        f"{provider} paused its answer for more than {seconds:g} seconds"
        if begun
        else f"{provider} did not begin to answer within {seconds:g} seconds"
    )
    return Failed(kind="timeout", message=f"{what}. Try again.")


def _problem(body: bytes) -> _Problem:
    try:
        read = msgspec.json.decode(body, type=_ErrorBody | list[_ErrorBody])
    except msgspec.DecodeError:
        text = body[:2000].decode("utf-8", "replace").strip()
        return _Problem(message="" if text.startswith("<") else text)
    if isinstance(read, list):  # Gemini's where it speaks OpenAI's API
        read = read[0] if read else _ErrorBody()
    if isinstance(read.error, _Problem):
        return _at_its_source(read.error)
    return _Problem(message=read.error or read.message or read.detail or "")


def _at_its_source(problem: _Problem) -> _Problem:
    """What the service behind a router said, where the router has passed it on.

    The router's own words are then no more than that there was an error.
    https://openrouter.ai/docs/api/reference/errors-and-debugging
    """
    raw = problem.metadata.get("raw") if isinstance(problem.metadata, dict) else None
    if not isinstance(raw, str | dict):
        return problem
    inner = _problem(raw.encode() if isinstance(raw, str) else msgspec.json.encode(raw))
    if not inner.message:
        return problem
    return msgspec.structs.replace(
        problem, message=inner.message, type=inner.type or problem.type, metadata=None
    )


def _worded(problem: _Problem, default: FailureKind) -> FailureKind:
    said = (problem.type, problem.code, problem.status, problem.message)
    words = " ".join(str(part) for part in said if part)
    if problem.status == _UNAVAILABLE:
        return "overloaded"
    if any(_REFUSED.fullmatch(str(part)) for part in (problem.code, problem.type, problem.message)):
        return "refused"
    lowered = words.lower()
    found: list[FailureKind] = [kind for word, kind in _BY_WORD.items() if word in lowered]
    # Tokens a minute are no window.
    if "rate_limit" not in {default, *found} and _OVERFLOW.search(words):
        return "overflow"
    if "quota" in found:
        return "rate_limit" if default == "rate_limit" and _passes(problem) else "quota"
    # A status says more than a general word beside it, unless it is general itself.
    general = default in {"bad_request", "server"}
    if general and _UNCHANGING.fullmatch(str(problem.code)):
        return "bad_request"
    return next(iter(found), default) if general else default


def _passes(problem: _Problem) -> bool:
    """Whether a quota is one of a minute: Gemini speaks of plan and billing there, too."""
    asked = _delay(problem, "rate_limit")
    return asked is not None and "PerDay" not in str(problem.details)


def _delay(problem: _Problem, kind: FailureKind, asked: float | None = None) -> float | None:
    """How long to wait, where a header has `asked` for it or the error's body does."""
    if asked is not None or kind not in {"rate_limit", "overloaded"}:
        return asked
    told = retry_delay.from_details(problem.details)
    return retry_delay.from_words(problem.message or "") if told is None else told


def _line(
    provider: Provider, kind: FailureKind, status: int | None, said: str, *, model: str
) -> str:
    code = f" (HTTP {status})" if status is not None else ""
    where = provider.name
    words = _clean(provider, said)
    quoted = f": {words}" if words else ""
    match kind:
        case "auth":
            key = f" or set {provider.key_env[0]}" if provider.key_env else ""
            # The provider's own words are left out: they often repeat a part of the key.
            return f"{where} refused the API key{code}. Run `acp-agent login {provider.id}`{key}."
        case "quota":
            return (
                f"{where} says that the account has no credit left{code}{quoted}. Top it up there."
            )
        case "not_found":
            return (
                f"{where} knows no model {model} at {provider.address}{code}{quoted}. "
                "Choose another model, or correct the base URL."
            )
        case "overflow":
            return (
                f"The conversation is too long for {model} at {where}{code}{quoted}. Shorten it "
                "with /compact, or choose a model with a larger window."
            )
        case "rate_limit":
            return f"{where} allows no more requests at the moment{code}{quoted}. Try again later."
        case "overloaded":
            return f"{where} is overloaded at the moment{code}{quoted}. Try again later."
        case "timeout":
            return f"{where} did not answer in time{code}{quoted}. Try again."
        case "connection":
            return f"No connection to {where} at {provider.address}{quoted}. Check the network."
        case "server":
            return f"{where} failed{code}{quoted}. Try again later."
        case _:
            return f"{where} refused the request{code}{quoted}."


def _clean(provider: Provider, said: str) -> str:
    line = " ".join("".join(one if one.isprintable() else " " for one in said).split())
    if provider.key:
        line = line.replace(provider.key, "***")
    for secret in credentials_in(provider.headers):
        if len(secret) >= _SHORTEST_SECRET:
            line = line.replace(secret, "***")
    line = _LIKE_A_KEY.sub("***", line).rstrip(".")
    return line if len(line) <= _DETAIL_LIMIT else f"{line[:_DETAIL_LIMIT]}…"


def _is_unsendable(error: BaseException) -> bool:
    """Whether a request's header could not be written: not as ASCII, or not by HTTP's rules."""
    import httpx2  # noqa: PLC0415 - as above

    illegal = isinstance(error, httpx2.LocalProtocolError) and "Illegal header" in str(error)
    return illegal or (isinstance(error, UnicodeEncodeError) and error.encoding == "ascii")
