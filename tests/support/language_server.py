"""A language server that finds each `BAD` in a document, and behaves as its arguments say.

Arguments: `push` sends problems unasked instead of being asked; `busy` none of a document that was
just opened; `hold=FILE` sends none while the
file exists; `project` knows of all files: each `BAD` anywhere is also an error in `other.txt` of
the root; `start=FILE` answers the handshake once the file exists; `pid=FILE` adds the process's id
to a file; `hover=TEXT` describes each symbol so; `stubborn` ends for no request; `edits=FILE`
offers to rename, with the edits that the JSON file has for the new name, in which `$version` is the
document's version and `$root` the project's URI.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

OPTIONS = dict(part.partition("=")[::2] for part in sys.argv[1:])


class Server:
    """Answers on stdin and stdout."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.root = ""

    def run(self) -> None:
        while (message := self.read()) is not None:
            method, params = message.get("method"), message.get("params") or {}
            if method == "exit":
                return
            if method == OPTIONS.get("unanswered", ""):
                continue
            if "id" in message and method is not None:
                self.send({"id": message["id"], "result": self.answer(method, params)})
            elif method in {"textDocument/didOpen", "textDocument/didChange"}:
                self.change(params)

    def answer(self, method: str, params: dict[str, Any]) -> object:
        if method == "initialize":
            self.root = params["rootUri"]
            wait_until(lambda: "start" not in OPTIONS or Path(OPTIONS["start"]).exists())
            pull = {"interFileDependencies": True, "workspaceDiagnostics": "project" in OPTIONS}
            sync = 2 if "ranges" in OPTIONS else 1
            offered: dict[str, object] = {"textDocumentSync": sync, "definitionProvider": True}
            if "edits" in OPTIONS:
                offered["renameProvider"] = True
            if "hover" in OPTIONS:
                offered["hoverProvider"] = True
            if "push" not in OPTIONS:
                offered["diagnosticProvider"] = pull
            return {
                "capabilities": offered,
                "serverInfo": {"name": "scripted", "version": "1.0"},
            }
        if method == "textDocument/diagnostic":
            wait_until(lambda: "hold" not in OPTIONS or not Path(OPTIONS["hold"]).exists())
            return {"kind": "full", "items": self.problems(params["textDocument"]["uri"])}
        if method == "workspace/diagnostic":
            found = [item for uri in self.texts for item in self.problems(uri)]
            items = [{"uri": f"{self.root}/other.txt", "kind": "full", "items": found}]
            return {"items": items if found else []}
        if method == "textDocument/hover":
            return {"contents": {"kind": "markdown", "value": OPTIONS["hover"]}}
        if method == "textDocument/definition":
            uri = params["textDocument"]["uri"]
            return {"uri": uri, "range": span(0, 0, 1)}
        if method == "textDocument/rename":
            version = self.versions[params["textDocument"]["uri"]]
            edits = json.loads(Path(OPTIONS["edits"]).read_text())[params["newName"]]
            text = json.dumps(edits).replace('"$version"', str(version))
            return json.loads(text.replace("$root", self.root))
        return None

    def change(self, params: dict[str, Any]) -> None:
        document = params["textDocument"]
        uri = document["uri"]
        self.versions[uri] = document["version"]
        changes = params.get("contentChanges")
        if changes and "ranges" in OPTIONS:
            self.texts[uri] = replaced(self.texts[uri], **changes[-1])
        else:
            self.texts[uri] = changes[-1]["text"] if changes else document["text"]
        if "push" in OPTIONS and ("busy" not in OPTIONS or changes):
            wait_until(lambda: "hold" not in OPTIONS or not Path(OPTIONS["hold"]).exists())
            found = {
                "uri": uri,
                "version": document["version"],
                "diagnostics": self.problems(uri),
            }
            self.send({"method": "textDocument/publishDiagnostics", "params": found})
        if "restless" in OPTIONS:
            threading.Thread(target=self.repeat, daemon=True).start()

    def repeat(self) -> None:
        """Send problems of another file without a pause."""
        params = {"uri": f"{self.root}/other.txt", "diagnostics": []}
        while True:
            self.send({"method": "textDocument/publishDiagnostics", "params": params})
            time.sleep(0.01)

    def problems(self, uri: str) -> list[object]:
        text = self.texts.get(uri)
        if text is None:
            text = Path(unquote(urlsplit(uri).path)).read_text()
        return [
            {
                "range": span(number, line.index("BAD"), line.index("BAD") + 3),
                "severity": 1,
                "code": "bad",
                "message": f"{line.split()[0]} is bad",
            }
            for number, line in enumerate(text.split("\n"))
            if "BAD" in line
        ]

    def read(self) -> dict[str, Any] | None:
        length = 0
        while line := sys.stdin.buffer.readline().strip():
            length = int(line.partition(b":")[2])
        if not length:
            return None
        message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
        return message

    def send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.01)


def replaced(before: str, text: str, range: dict[str, Any]) -> str:  # noqa: A002 - its name
    """The text with a part replaced; a part that ends behind the text is a mistake."""
    lines = before.split("\n")
    start, end = range["start"], range["end"]
    if end["line"] >= len(lines) or end["character"] > len(lines[end["line"]]):
        return "ERROR: a change behind the end"
    head = [*lines[: start["line"]], lines[start["line"]][: start["character"]]]
    tail = [lines[end["line"]][end["character"] :], *lines[end["line"] + 1 :]]
    return "\n".join(head) + text + "\n".join(tail)


def span(line: int, first: int, last: int) -> dict[str, object]:
    """A range in one line."""
    return {
        "start": {"line": line, "character": first},
        "end": {"line": line, "character": last},
    }


if __name__ == "__main__":
    if "pid" in OPTIONS:
        with Path(OPTIONS["pid"]).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if "stubborn" in OPTIONS:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    Server().run()
    while "stubborn" in OPTIONS:
        time.sleep(600)
