"""An authorization server (OAuth 2.1) for tests, in front of an MCP server behind HTTP.

It is written from the RFCs, without the `mcp` package, and refuses what they refuse: a wrong
verifier (7636), another redirect address (6749), a refresh token that was used before, a wrong
resource (8707). Whoever asks is logged in at once.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt

from tests.extensions.mcp_web import WebServer

Json = dict[str, Any]
Form = dict[str, str]


class AuthorizedServer(WebServer):
    """A server that wants a login.

    Attributes:
        iss: what the authorization response says of its issuer (RFC 9207); None: the truth.
        lifetime: of access tokens, in seconds.
        changes: to its metadata; None removes a field.
        open_methods: what of MCP anybody may call.
        only_with_secret: whether clients without a secret are refused.
        documents: whether client id metadata documents are supported.
        devices: what is left of the polls that a device login takes.
        log: the requests to the authorization server, by path.
    """

    def __init__(self) -> None:
        super().__init__("http", None)
        self.iss: str | None = None
        self.lifetime = 3_600
        self.changes: Json = {}
        self.open_methods: frozenset[str] = frozenset()
        self.only_with_secret = False
        self.documents = False
        self.devices = 2
        self.secret = ""  # which the client has to send
        self.public_key: Any = None  # of the client that logs in by assertions
        self.assertions: set[str] = set()
        self.log: list[str] = []
        self.clients: dict[str, Json] = {}
        self.codes: dict[str, Form] = {}
        self.access: set[str] = set()
        self.refreshing: set[str] = set()

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        path = scope["path"]
        handler = getattr(self, "_" + path.strip("/").replace(".", "").replace("-", "_"), None)
        if path.startswith("/.well-known/oauth-protected-resource"):
            await answer(send, 200, {"resource": self.url, "authorization_servers": [self.issuer]})
        elif path == "/.well-known/oauth-authorization-server":
            await answer(send, 200, self.metadata())
        elif path in {"/register", "/authorize", "/token", "/device"}:
            self.log.append(path)
            body = b""
            while True:
                message = await receive()
                body += message.get("body", b"")
                if not message.get("more_body"):
                    break
            query = dict(parse_qsl(scope["query_string"].decode()))
            form = query if scope["method"] == "GET" else dict(parse_qsl(body.decode()))
            for name, value in scope["headers"]:
                if name == b"authorization" and value.startswith(b"Basic "):
                    basic = base64.b64decode(value.removeprefix(b"Basic ")).decode()
                    form["client_secret"] = basic.partition(":")[2]
            assert handler is not None
            await handler(form, body, send)
        else:
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            token = headers.get("authorization", "").removeprefix("Bearer ")
            message = await receive()
            body = message.get("body", b"")
            is_open = bool(body) and json.loads(body).get("method") in self.open_methods
            if token not in self.access and not is_open:
                where = f"{self.issuer}/.well-known/oauth-protected-resource/mcp"
                challenge = f'Bearer resource_metadata="{where}"'.encode()
                await answer(send, 401, {}, (b"www-authenticate", challenge))
                return
            messages = [message]

            async def replay() -> Any:
                return messages.pop() if messages else await receive()

            await super().app(scope, replay, send)

    def metadata(self) -> Json:
        """What it says of itself (RFC 8414)."""
        metadata = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "device_authorization_endpoint": f"{self.issuer}/device",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": self.documents,
        } | self.changes
        return {name: value for name, value in metadata.items() if value is not None}

    async def _register(self, form: Form, body: bytes, send: Any) -> None:
        del form
        client = json.loads(body) | {"client_id": secrets.token_hex(4)}
        if client["token_endpoint_auth_method"] != "none":
            client["client_secret"] = secrets.token_hex(8)
        elif self.only_with_secret:
            error = {"error": "invalid_client_metadata", "error_description": "secrets only"}
            await answer(send, 400, error)
            return
        self.clients[client["client_id"]] = client
        await answer(send, 201, client)

    async def _authorize(self, form: Form, body: bytes, send: Any) -> None:
        del body
        client = self.clients.get(form["client_id"])
        known = client["redirect_uris"] if client else [form["redirect_uri"]] * self.documents
        if form["redirect_uri"] not in known or form["code_challenge_method"] != "S256":
            await answer(send, 400, {"error": "invalid_request"})
            return
        code = secrets.token_hex(8)
        self.codes[code] = form
        said = {"code": code, "state": form["state"], "iss": self.iss or self.issuer}
        place = f"{form['redirect_uri']}?{urlencode(said)}".encode()
        await answer(send, 302, {}, (b"location", place))

    def _is_client(self, form: Form) -> bool:
        """Whether the client has its secret, or signed an assertion for this server."""
        if self.public_key is None:
            return bool(form.get("client_secret"))
        claims = jwt.decode(
            form["client_assertion"],
            self.public_key,
            algorithms=["RS256", "ES256", "EdDSA"],
            audience=self.issuer,
        )
        fresh = claims["jti"] not in self.assertions
        self.assertions.add(claims["jti"])
        kind = form["client_assertion_type"].endswith(":jwt-bearer")
        return fresh and kind and claims["iss"] == claims["sub"] == "team"

    async def _device(self, form: Form, body: bytes, send: Any) -> None:
        del body
        self.codes["device"] = form
        await answer(
            send,
            200,
            {
                "device_code": "device",
                "user_code": "ABCD-EFGH",
                "verification_uri": f"{self.issuer}/enter",
                "expires_in": 60,
                "interval": 0.01,
            },
        )

    async def _token(self, form: Form, body: bytes, send: Any) -> None:
        del body
        error = self._error(form)
        if error:
            await answer(send, 400, {"error": error})
            return
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.access.add(access)
        self.refreshing.add(refresh)
        tokens = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer"}
        if form["grant_type"] == "client_credentials":
            del tokens["refresh_token"]
        await answer(send, 200, tokens | {"expires_in": self.lifetime})

    def _error(self, form: Form) -> str:
        if self.secret and form.get("client_secret") != self.secret:
            return "invalid_client"
        match form["grant_type"]:
            case "authorization_code":
                asked = self.codes.pop(form["code"], {})
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                same = all(
                    asked.get(name) == form.get(name)
                    for name in ("client_id", "redirect_uri", "resource")
                )
                good = same and asked["code_challenge"] == challenge
                return "" if good and form["resource"] == self.url else "invalid_grant"
            case "refresh_token":
                if form["refresh_token"] not in self.refreshing:
                    return "invalid_grant"
                self.refreshing.remove(form["refresh_token"])
                self.access.clear()
                return ""
            case "urn:ietf:params:oauth:grant-type:device_code":
                self.devices -= 1
                known = self.codes["device"]["client_id"] == form["client_id"]
                if not known:
                    return "invalid_grant"
                return "authorization_pending" if self.devices > 0 else ""
            case "client_credentials":
                self.access.clear()
                good = self._is_client(form) and form["resource"] == self.url
                return "" if good else "invalid_client"
            case _:
                return "unsupported_grant_type"


async def answer(send: Any, status: int, value: Json, *headers: tuple[bytes, bytes]) -> None:
    """Send an answer in JSON."""
    kind = (b"content-type", b"application/json")
    await send({"type": "http.response.start", "status": status, "headers": [kind, *headers]})
    await send({"type": "http.response.body", "body": json.dumps(value).encode()})
