"""The result of a translation: rules, and settings without a counterpart."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.cli.editors.jsonc import BOM, parse
from acp_agent.config.policy_types import RuleConfig
from acp_agent.errors import InvalidInputError
from acp_agent.permissions.policy.loading import check_examples, make_rule
from acp_agent.permissions.policy.rules import Effect, RuleError, Source
from acp_agent.platform.descriptor_limit import describe_os_error

_MAX_VALUE_LENGTH = 60  # characters of a shown value
_MAX_BYTES = 1_000_000  # bytes of a file


class Untranslated(Struct, frozen=True):
    """A setting without a counterpart, and why."""

    what: str
    why: str


class Translation:
    """The rules translated from a file, in order.

    Attributes:
        untranslated: settings in the file without a counterpart.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rules: list[tuple[Effect, RuleConfig]] = []
        self.untranslated: list[Untranslated] = []

    def add(self, effect: Effect, rule: RuleConfig, *, source_text: str = "") -> None:
        """Add a rule if it is valid here; drop its examples that do not hold here.

        Args:
            source_text: the rule's text in the file, if that differs.
        """
        source = Source(file=str(self.file))
        try:
            policy_rule = make_rule(effect, rule, source)
        except RuleError as error:
            self.skip(source_text or rule.rule, str(error))
            return
        for key in ("match", "not_match"):
            for example in getattr(rule, key):
                try:
                    check_examples(policy_rule, **{"match": [], "not_match": [], key: [example]})
                except RuleError as error:
                    examples = [each for each in getattr(rule, key) if each != example]
                    rule = replace(rule, **{key: examples})
                    self.skip(source_text or rule.rule, str(error))
        if (effect, rule) not in self.rules:
            self.rules.append((effect, rule))

    def skip(self, source_text: str, reason: str) -> None:
        """Record a setting without a counterpart."""
        self.untranslated.append(Untranslated(source_text, reason))

    def skip_value(self, key: str, value: object, reason: str) -> None:
        """Record a key and its value, which have no counterpart."""
        self.skip(f"{key}: {shorten_value(value)}", reason)


def read_file(file: Path) -> bytes:
    """Return the bytes of a file. Raises InvalidInputError."""
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidInputError("it is too large to be a file of settings")
        return file.read_bytes().removeprefix(BOM)
    except OSError as error:
        raise InvalidInputError(f"it cannot be read ({describe_os_error(error)})") from None


def read_toml(file: Path) -> dict[str, object]:
    """Return the tables of a TOML file. Raises InvalidInputError."""
    try:
        return tomllib.loads(read_file(file).decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"it is not TOML ({error})") from None


def read_settings(file: Path) -> dict[str, object]:
    """Return the settings in a file of JSON with comments. Raises InvalidInputError."""
    content = parse(read_file(file)).content
    if not isinstance(content, dict):
        raise InvalidInputError("it has no object")
    return content


def shorten_value(value: object) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def texts(value: object) -> Sequence[str]:
    """Return the texts of a list; nothing for other values."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
