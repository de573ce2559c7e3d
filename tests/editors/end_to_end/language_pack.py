"""A language pack for the editor: it has no words of its own, but lets the editor be in a language.

An editor shows an extension in Chinese only where it is in Chinese itself, which takes a pack.
"""

from __future__ import annotations

import json
from pathlib import Path


def language_pack(data: Path, language: str) -> None:
    """Let the editor know a language, such as "zh-cn", as if a pack for it had been installed.

    Args:
        data: the editor's folder of user data, where its list of packs is.
        language: the language.
    """
    words = data / f"words-{language}.json"
    words.write_text(json.dumps({"version": "1.0.0", "contents": {}}))
    identifier = {"id": f"tests.language-pack-{language}"}
    pack = {
        "hash": language,
        "extensions": [{"extensionIdentifier": identifier, "version": "1.0.0"}],
        "translations": {"vscode": str(words)},
        "label": language,
    }
    (data / "languagepacks.json").write_text(json.dumps({language: pack}))
