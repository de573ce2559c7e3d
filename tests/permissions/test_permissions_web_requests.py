"""Requests that may change something on a host: asked about each time, whatever was answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.config.policy_types import PermissionsConfig
from acp_agent.permissions.access import Allow, Ask, FetchAccess, Mode, Refuse
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore
from acp_agent.permissions.policy.loading import Policies, compile_rules
from acp_agent.permissions.policy.rules import Source
from tests.permissions.gate_room import ONCE, Room, kinds

URL = "https://api.example.com/items"


def gate_with(rules: PermissionsConfig, folder: Path) -> PolicyGate:
    policies = Policies(compile_rules(rules, Source(file="config.toml")))
    return PolicyGate(GrantStore(folder / "grants.json"), policies=policies)


@pytest.mark.parametrize("mode", ["ask", "accept-edits"])
def test_a_request_is_asked_about_each_time_and_the_answer_is_never_remembered(
    room: Room, mode: Mode
) -> None:
    room.press(room.fetch(URL), "allow_always")
    assert isinstance(room.fetch(URL, mode), Allow)
    verdict = room.request(URL, mode, named=True)
    assert kinds(verdict) == ONCE
    assert isinstance(verdict, Ask)
    assert verdict.warning == "This request may change something at `api.example.com`."


@pytest.mark.parametrize("mode", ["plan", "draft"])
def test_modes_that_only_read_refuse_it(room: Room, mode: Mode) -> None:
    assert isinstance(room.request(URL, mode, named=True), Refuse)


def test_full_mode_sends_it_to_hosts_that_the_user_named_or_always_allows(room: Room) -> None:
    assert isinstance(room.request(URL, "full", named=True), Allow)
    asked = room.request(URL, "full")
    assert kinds(asked) == ONCE
    assert isinstance(asked, Ask)
    assert "You did not name `api.example.com`" in asked.warning
    room.press(room.fetch(URL), "allow_always")
    assert isinstance(room.request(URL, "full"), Allow)


def test_full_mode_asks_before_it_sends_anything_to_a_host_of_documentation(room: Room) -> None:
    assert isinstance(room.fetch("https://github.com/x/y", "full"), Allow)
    assert isinstance(room.request("https://github.com/x/y", "full"), Ask)


def test_a_host_that_is_never_fetched_from_gets_no_request(room: Room) -> None:
    room.press(room.fetch(URL), "reject_always")
    assert isinstance(room.request(URL, "full", named=True), Refuse)


def test_a_rule_that_allows_a_host_is_about_reading_outside_of_full_mode(tmp_path: Path) -> None:
    rules = PermissionsConfig(allow=["WebFetch(domain:api.example.com)"])
    gate = gate_with(rules, tmp_path)
    access = FetchAccess(URL, changes=True)
    assert isinstance(gate.judge(FetchAccess(URL), mode="ask", project=str(tmp_path)), Allow)
    assert isinstance(gate.judge(access, mode="ask", project=str(tmp_path)), Ask)
    assert isinstance(gate.judge(access, mode="full", project=str(tmp_path)), Allow)


def test_rules_that_refuse_or_ask_are_about_requests_too(tmp_path: Path) -> None:
    rules = PermissionsConfig(
        deny=["WebFetch(domain:bad.example)"], ask=["WebFetch(domain:api.example.com)"]
    )
    gate = gate_with(rules, tmp_path)
    bad = FetchAccess("https://bad.example/x", user_named=True, changes=True)
    assert isinstance(gate.judge(bad, mode="full", project=str(tmp_path)), Refuse)
    asked = gate.judge(
        FetchAccess(URL, user_named=True, changes=True), mode="full", project=str(tmp_path)
    )
    assert isinstance(asked, Ask)
    assert asked.rule
