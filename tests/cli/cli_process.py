"""Runs the real command as a child process, with a home and an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.warm_parent import shared_parent

CLOSED_PORT = "http://127.0.0.1:9/v1"  # the discard service, which no machine runs


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without anybody's keys; the local provider is one that does not answer."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ACP_AGENT_HOME": str(home / "agent"),
        "LOCAL_BASE_URL": CLOSED_PORT,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(sys.path),
        **(extra or {}),
    }


def acp_agent(
    home: Path, *arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `acp-agent` with `arguments` until it ends, forked after its imports."""
    return shared_parent().run(arguments, cwd=home, env=environment(home, environ), stdin=stdin)


class Provider:
    """A provider over HTTP on 127.0.0.1 that takes one key and records what it was asked."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.status: int | None = None  # answered to everything, where set
        self.page = b""  # answered in place of the models, where set
        self.url = ""


@contextmanager
def provider(key: str) -> Iterator[Provider]:
    """Serve a provider for as long as the block runs."""
    served = Provider(key)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            served.asked.append((self.path, headers))
            key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix(
                "Bearer "
            )
            status = served.status or (200 if key == served.key else 401)
            listed = {"data": [{"id": "one"}, {"id": "two"}]} if status == 200 else {}
            body = served.page or json.dumps(listed).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"{served.url}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join(10)
