"""Localisation of the command line's output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from acp_agent.config.localization import (
    Language,
    Translator,
    choose_language,
    command_line_translator,
)


def translate(text: str, /, **values: object) -> str:
    """Translate `text` to the user's language and fill in its placeholders."""
    return user_translator()(text, **values)


def translate_rendered(text: str) -> str:
    """Translate a rendered English text, such as an exception's."""
    return user_translator().rendered(text)


def user_translator() -> Translator:
    """Return the translator to the user's language. Blocks while it reads small files, once."""
    return command_line_translator(language())


def language() -> Language:
    """Return the user's language. Reads a small file on the first call."""
    return choose_language(_setting(os.environ), os.environ)


def _setting(environ: Mapping[str, str]) -> str:
    """Return the setting `language`; errors in the configuration are reported elsewhere."""
    setting = environ.get("ACP_AGENT_LANGUAGE")
    if setting:
        return setting
    from acp_agent.config.paths import find_paths  # noqa: PLC0415 - the variable goes first

    return _setting_in_file(str(find_paths(environ).config_file))


@cache
def _setting_in_file(path: str) -> str:
    """Read the setting from the configuration file without validating the rest."""
    from pathlib import Path  # noqa: PLC0415 - as the rest

    from acp_agent.config.load import parse, read_text  # noqa: PLC0415 - likewise
    from acp_agent.errors import ConfigError  # noqa: PLC0415 - likewise

    try:
        text = read_text(Path(path))
        table = parse(Path(path), text) if text else {}
    except ConfigError:
        return ""
    setting = table.get("language")
    return setting if isinstance(setting, str) else ""
