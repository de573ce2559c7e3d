"""Values for completion: the user's sessions, models, providers and editors.

Read without the modules of the commands, as completion must be fast. Values that cannot be read
are left out; the commands report why.
"""

from __future__ import annotations

import json
import sqlite3
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acp_agent.config.paths import Paths, find_paths

Candidate = tuple[str, str]  # what is put in, and what is said of it

SESSIONS = 50
_BUSY_SECONDS = 0.05
_PACKAGE = Path(__file__).parents[2]


class UserValues:
    """The lists of one user.

    Args:
        environ: the user's environment.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._paths: Paths = find_paths(environ)

    def of(self, kind: str) -> list[Candidate]:
        """The candidates of a kind; none for one that is not listed here.

        Raises:
            sqlite3.Error: they cannot be read.
        """
        lists = {
            "session": self._latest,
            "session id": self._sessions,
            "model": self._models,
            "provider": self._providers,
            "editor": self._editors,
        }
        return list(lists[kind]()) if kind in lists else []

    def language(self) -> str:
        """The setting `language`, and the empty string where there is none."""
        named = self._environ.get("ACP_AGENT_LANGUAGE") or self._settings().get("language")
        return named if isinstance(named, str) else ""

    def _latest(self) -> Iterator[Candidate]:
        """The sessions, and what stands for the first of them."""
        sessions = list(self._sessions())
        if sessions:
            yield "latest", sessions[0][1]
        yield from sessions

    def _sessions(self) -> Iterator[Candidate]:
        """The sessions that were used last, newest first, with their titles or folders."""
        path = self._paths.sessions_file
        if not path.exists():
            return
        uri = f"{path.as_uri()}?mode=ro"  # looking must not make one
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)
        try:
            rows = connection.execute(
                "SELECT id, title, cwd FROM sessions WHERE turns > 0 AND NOT archived "
                "ORDER BY updated_at DESC, id DESC LIMIT ?",
                (SESSIONS,),
            ).fetchall()
        finally:
            connection.close()
        for session, title, cwd in rows:
            yield session, title or cwd

    def _models(self) -> Iterator[Candidate]:
        """The models of the catalog, and those that the configuration names."""
        catalog = json.loads((_PACKAGE / "models" / "catalog.json").read_text("utf-8"))
        known = {model["ref"]: model["name"] for model in catalog["models"]}
        settings = self._settings()
        for ref in _strings(settings.get("models"), settings.get("fallback_models")):
            known.setdefault(ref, "")
        for name in ("model", "small_model", "vision_model", "embedding_model"):
            for ref in _strings([settings.get(name)]):
                known.setdefault(ref, "")
        yield from known.items()

    def _providers(self) -> Iterator[Candidate]:
        """The providers that we know, and those of the configuration."""
        presets = json.loads((_PACKAGE / "models" / "providers.json").read_text("utf-8"))
        known = {preset["id"]: preset["name"] for preset in presets if preset["api"] != "demo"}
        for name in _strings(self._settings().get("providers")):
            known.setdefault(name, "")
        yield from known.items()

    def _editors(self) -> Iterator[Candidate]:
        text = (_PACKAGE / "cli" / "editors" / "catalog.toml").read_text("utf-8")
        for name, table in tomllib.loads(text).items():
            yield name, table["title"]

    def _settings(self) -> dict[str, Any]:
        """The configuration file as it is written; nothing where it cannot be read."""
        try:
            return tomllib.loads(self._paths.config_file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}


def _strings(*lists: object) -> Iterator[str]:
    """The strings of lists and the keys of tables, as far as they are what they should be."""
    for one in lists:
        if isinstance(one, Iterable) and not isinstance(one, str):
            yield from (item for item in one if isinstance(item, str))
