"""What the user reads of the gate is complete in both languages."""

from __future__ import annotations

import re
import string
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from acp_agent.permissions.access import Ask, CommandAccess
from acp_agent.permissions.choices import reason_texts, translate_reason
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.rules import shell_rules

ROOM = files("acp_agent.permissions")
SOURCES = "".join(
    (ROOM / name).read_text("utf-8")
    for name in (
        "classify.py",
        "destructive_commands.py",
        "wrapped_commands.py",
        "shell_rules.toml",
        "run_by_themselves.toml",
    )
)


def placeholders(text: str) -> list[str]:
    return sorted(field for _, field, _, _ in string.Formatter().parse(text) if field is not None)


def test_the_buttons_have_the_same_keys_and_placeholders_in_both_languages() -> None:
    catalog = tomllib.loads((ROOM / "gate_texts.toml").read_text("utf-8"))
    assert catalog["en"].keys() == catalog["zh"].keys()
    for key, text in catalog["en"].items():
        assert placeholders(catalog["zh"][key]) == placeholders(text), key


def test_every_reason_for_the_tier_of_a_command_has_a_text_with_the_same_placeholders() -> None:
    texts = reason_texts("zh")
    needed = {rule.why for rule in shell_rules().rules}
    needed |= set(re.findall(r'tier="destructive", why="([^"]+)"', SOURCES))
    needed |= set(
        re.findall(r'"(?:destructive|standard|read_only)", (?:\w+, )?"(\w+ [^"]+)"', SOURCES)
    )
    needed |= set(re.findall(r'why = "([^"]+)"', SOURCES))
    assert needed <= texts.keys()
    for reason, text in texts.items():
        assert placeholders(text) == placeholders(reason), reason


def test_every_translated_reason_is_used_by_a_rule() -> None:
    for reason in reason_texts("zh"):
        assert reason.partition("{}")[0] in SOURCES, reason


@pytest.mark.parametrize(
    ("command", "warning"),
    [
        ("git reset --hard", "此操作难以撤销：`git reset --hard` 会丢弃未提交的更改。"),
        ("echo x > /etc/motd", "此操作难以撤销：`echo x` 会写入项目文件夹之外的 /etc/motd。"),
    ],
)
def test_a_warning_is_wholly_in_the_users_language(
    tmp_path: Path, command: str, warning: str
) -> None:
    gate = PolicyGate(GrantStore(tmp_path / "grants.json"), language="zh", home=str(tmp_path))
    verdict = gate.judge(
        CommandAccess(command, str(tmp_path), roots=(str(tmp_path),)),
        mode="ask",
        project=str(tmp_path),
    )
    assert isinstance(verdict, Ask)
    assert verdict.warning == warning


def test_an_english_reason_stays_as_the_rule_has_it() -> None:
    assert translate_reason("en", "deletes files") == "deletes files"
