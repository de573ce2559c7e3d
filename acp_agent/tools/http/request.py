"""Send an HTTP request of any method."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files as package_files
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

from acp_agent.content import JsonObject, escaped, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import code_block, first_line, shorten
from acp_agent.workspace.http_requests import SAFE_METHODS, HttpRequest, HttpResponse
from acp_agent.workspace.scrub import holds_credential
from acp_agent.workspace.workspace import Workspace

TEXT_LIMIT = 48_000  # characters of an answer's body that the model is sent
MAX_SHOWN_LENGTH = 2_000  # characters of a body that the call shows
TIMEOUT = 30.0  # seconds for an answer
_MAX_BODY_BYTES = 1_000_000  # bytes of a body that is sent
_MAX_HEADERS = 50
_MAX_HEADER_LENGTH = 4_000  # characters of a value
_MAX_SHOWN_HEADER = 300  # characters of an answer's header
_MAX_TITLE = 120
_METHOD = re.compile(r"[A-Z][A-Z-]{0,19}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")  # RFC 9110, section 5.6.2
_TUNNELS = frozenset({"CONNECT", "TRACE"})
# Headers of the target, the framing and the encoding of a request.
_CLIENT_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive"}
)
_FRAMING = frozenset({"te", "trailer", "transfer-encoding", "upgrade"})
_OVERRIDES = frozenset({"x-http-method", "x-http-method-override", "x-method-override"})
_REPORTED_HEADERS = frozenset({"allow", "etag", "last-modified", "link", "location", "retry-after"})
_REPORTED_PREFIXES = (
    "cache-control",
    "content-",
    "ratelimit",
    "www-authenticate",
    "x-ratelimit",
    "x-total",
)


def _as_text(value: object) -> object:
    """Return a body given as a JSON value as text."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


class HttpRequestParams(ToolParams):
    """The http_request tool's parameters."""

    url: Annotated[str, Field(min_length=1)]
    method: str = "GET"
    headers: dict[str, str] | None = None
    body: Annotated[str | None, BeforeValidator(_as_text)] = None


class HttpRequestTool(Tool[HttpRequestParams]):
    """Sends a request to the public network.

    Args:
        secrets: returns the values that must not be sent.
    """

    name: ClassVar[str] = "http_request"
    kind: ClassVar[ToolKind] = "fetch"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[HttpRequestParams]] = HttpRequestParams

    def __init__(self, workspace: Workspace, secrets: Callable[[], Sequence[str]]) -> None:
        super().__init__(workspace)
        self._secrets = secrets

    def description(self) -> str:
        """Return the description for the model."""
        return (package_files(__package__) / "request.md").read_text("utf-8").strip()

    def title(self, arguments: JsonObject) -> str:
        """Return the method, host and path received so far."""
        url, method = arguments.get("url"), arguments.get("method", "GET")
        if not isinstance(url, str) or not isinstance(method, str):
            return self.name
        return _title(method.strip().upper(), url)

    def touches(self, params: HttpRequestParams) -> Touches:
        """Requests run in the order of their calls if one of them may change something."""
        resource = (f"requests to {urlsplit(params.url.strip()).netloc.lower()}",)
        return Touches(writes=resource) if _may_change(params) else Touches(reads=resource)

    async def prepare(self, params: HttpRequestParams) -> Prepared:
        """Prepare the display of everything that would be sent."""
        request = _build_request(params)
        self._refuse_credentials(request)
        network, url = self.workspace.network, request.url
        await network.check(url)  # before the user is asked
        changes = _may_change(params)
        return Prepared(
            title=_title(request.method, url),
            run=functools.partial(self._run, request),
            access=FetchAccess(
                url, user_named=await network.is_named(url, by_user=changes), changes=changes
            ),
            content=tuple(map(text_part, _describe_request(request))),
        )

    def _refuse_credentials(self, request: HttpRequest) -> None:
        secrets = self._secrets()
        headers = [f"{name}: {value}" for name, value in request.headers.items()]
        request_texts = {
            "the address": [request.url],
            "a header": headers,
            "the body": [(request.body or b"").decode()],
        }
        for location, texts in request_texts.items():
            if any(holds_credential(text, secrets) for text in texts):
                raise ToolError(
                    f"{location} contains a credential, and none is sent to the network",
                    advice="leave it out; if the request needs it, ask the user to send it",
                    shown="the request contained a credential, so it was not sent",
                )

    async def _run(self, request: HttpRequest, _progress: Progress) -> Outcome:
        network = self.workspace.network
        response = await network.request(request, limit=TEXT_LIMIT, timeout=TIMEOUT)
        cut_note = ", cut off" if response.truncated else ""
        lines = [f"{request.method} {response.url}: HTTP {response.status}{cut_note}"]
        lines += [
            f"{name.lower()}: {first_line(value, _MAX_SHOWN_HEADER)}"
            for name, value in response.headers
            if name.lower() in _REPORTED_HEADERS or name.lower().startswith(_REPORTED_PREFIXES)
        ]
        if response.redirect_url:
            lines.append(f"It leads to {response.redirect_url}, which was not requested.")
        body = _body(request.method, response)
        user_text = code_block(shorten(body, MAX_SHOWN_LENGTH), _language(response))
        return Outcome(
            text="\n".join((*lines, "", body)),
            failed=response.status >= 400,
            content=(
                *map(text_part, _describe_request(request)),
                text_part(f"HTTP {response.status}\n{user_text}"),
            ),
            raw_output={
                "url": response.url,
                "status": response.status,
                "media_type": response.media_type,
                "truncated": response.truncated,
            },
        )


def _may_change(params: HttpRequestParams) -> bool:
    """Return whether a request may change something: all but a plain GET or HEAD may."""
    names = {name.strip().lower() for name in params.headers or {}}
    reads = params.method.strip().upper() in SAFE_METHODS
    return not reads or bool(params.body) or not _OVERRIDES.isdisjoint(names)


def _build_request(params: HttpRequestParams) -> HttpRequest:
    """Return the request for the parameters. Raises ToolError if a part of it cannot be sent."""
    url, method = params.url.strip(), params.method.strip().upper()
    if not _METHOD.fullmatch(method) or method in _TUNNELS:
        raise ToolError(f"{first_line(method, 40)!r} is not a method that can be sent")
    headers = {name.strip(): value.strip() for name, value in (params.headers or {}).items()}
    _check_headers(headers)
    body = params.body.encode("utf-8", "replace") if params.body else None
    if body is not None and len(body) > _MAX_BODY_BYTES:
        raise ToolError(f"the body is longer than {_MAX_BODY_BYTES:,} bytes")
    if body is not None and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = _content_type(body)
    return HttpRequest(method=method, url=url, headers=headers, body=body)


def _check_headers(headers: Mapping[str, str]) -> None:
    if len(headers) > _MAX_HEADERS:
        raise ToolError(f"there are more than {_MAX_HEADERS} headers")
    for name, value in headers.items():
        label = first_line(name, 40)
        if not _HEADER_NAME.fullmatch(name):
            raise ToolError(f"{label!r} is not a header's name")
        if name.lower() in _CLIENT_HEADERS | _FRAMING or name.lower().startswith(
            ("proxy-", "sec-")
        ):
            raise ToolError(f"the header {label} cannot be set", advice="leave it out")
        if len(value) > _MAX_HEADER_LENGTH or not (value.isascii() and value.isprintable()):
            raise ToolError(
                f"the header {label} must be one line of ASCII, "
                f"at most {_MAX_HEADER_LENGTH:,} characters"
            )


def _content_type(body: bytes) -> str:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"


def _describe_request(request: HttpRequest) -> list[str]:
    """Return the parts of a request that the user must see: URL, headers, start of the body."""
    head = [f"{request.method} {first_line(request.url, MAX_SHOWN_LENGTH)}"]
    head += [f"{name}: {first_line(value, 500)}" for name, value in request.headers.items()]
    blocks = [code_block("\n".join(head), "")]
    if request.body is not None:
        text = escaped(request.body.decode())
        excerpt = text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}\n[…]"
        blocks.append(f"{len(request.body):,} bytes:\n{code_block(excerpt, '')}")
    return blocks


def _body(method: str, response: HttpResponse) -> str:
    if response.text is None:
        size = f"{'more than ' if response.truncated else ''}{response.size:,} bytes"
        return f"[{response.media_type or 'binary data'}, {size}; not shown and not saved]"
    if not response.text.strip():
        return "[no body]" if method == "HEAD" or not response.size else "[the body has no text]"
    return response.text


def _language(response: HttpResponse) -> str:
    return "json" if response.media_type.endswith("json") else ""


def _title(method: str, url: str) -> str:
    """Return the method, host and path; the content of the call shows the whole URL."""
    try:
        url_parts = urlsplit(url.strip())
        location = f"{url_parts.hostname or ''}{url_parts.path}".rstrip("/")
    except ValueError:
        location = url
    return first_line(f"{method} {location or url}", _MAX_TITLE).rstrip()
