"""Values for completion: the user's sessions, models, providers and editors.

They are read without the modules of the commands, because completion must be fast. Unreadable
values are left out; the commands report why.
"""

from __future__ import annotations

import json
import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acp_agent.config.paths import Paths, find_paths

Candidate = tuple[str, str]  # value and description

MAX_SESSIONS = 50
_BUSY_SECONDS = 0.05
_PACKAGE = Path(__file__).parents[2]


class UserValues:
    """The values of one user."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._paths: Paths = find_paths(environ)

    def candidates(self, kind: str) -> list[Candidate]:
        """Return the candidates of a kind; none for an unknown kind. Raises sqlite3.Error."""
        lists = {
            "session": self._latest,
            "session id": self._sessions,
            "model": self._models,
            "provider": self._providers,
            "editor": self._editors,
        }
        return list(lists[kind]()) if kind in lists else []

    def language(self) -> str:
        """Return the setting `language`; empty if it is not set."""
        setting = self._environ.get("ACP_AGENT_LANGUAGE") or self._settings().get("language")
        return setting if isinstance(setting, str) else ""

    def _latest(self) -> Iterator[Candidate]:
        """Yield `latest`, which stands for the first session, then the sessions."""
        sessions = list(self._sessions())
        if sessions:
            yield "latest", sessions[0][1]
        yield from sessions

    def _sessions(self) -> Iterator[Candidate]:
        """Yield the latest sessions, newest first, with their titles or folders."""
        path = self._paths.sessions_file
        if not path.exists():
            return
        uri = f"{path.as_uri()}?mode=ro"  # read-only, so that the file is not created
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)
        try:
            rows = connection.execute(
                "SELECT id, title, cwd FROM sessions WHERE turns > 0 AND NOT archived "
                "ORDER BY updated_at DESC, id DESC LIMIT ?",
                (MAX_SESSIONS,),
            ).fetchall()
        finally:
            connection.close()
        for session, title, cwd in rows:
            yield session, title or cwd

    def _models(self) -> Iterator[Candidate]:
        """Yield the models of the catalog and of the configuration."""
        catalog = json.loads((_PACKAGE / "models" / "catalog.json").read_text("utf-8"))
        names = {model["ref"]: model["name"] for model in catalog["models"]}
        settings = self._settings()
        for ref in _strings(settings.get("models"), settings.get("fallback_models")):
            names.setdefault(ref, "")
        for name in ("model", "small_model", "vision_model", "embedding_model"):
            for ref in _strings([settings.get(name)]):
                names.setdefault(ref, "")
        yield from names.items()

    def _providers(self) -> Iterator[Candidate]:
        """Yield the known providers and those of the configuration."""
        presets = json.loads((_PACKAGE / "models" / "providers.json").read_text("utf-8"))
        names = {preset["id"]: preset["name"] for preset in presets if preset["api"] != "demo"}
        for name in _strings(self._settings().get("providers")):
            names.setdefault(name, "")
        yield from names.items()

    def _editors(self) -> Iterator[Candidate]:
        text = (_PACKAGE / "cli" / "editors" / "catalog.toml").read_text("utf-8")
        for name, table in tomllib.loads(text).items():
            yield name, table["title"]

    def _settings(self) -> dict[str, Any]:
        """Return the configuration file's content; nothing if it cannot be read."""
        try:
            return tomllib.loads(self._paths.config_file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}


def _strings(*lists: object) -> Iterator[str]:
    """Yield the strings in lists and the keys of tables; skip other values."""
    for items in lists:
        if isinstance(items, Iterable) and not isinstance(items, str):
            yield from (item for item in items if isinstance(item, str))
