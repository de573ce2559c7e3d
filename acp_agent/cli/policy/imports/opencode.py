"""Translate the permissions of opencode: `permission` in opencode.json, global and per agent.

In opencode the last matching rule decides, here the strictest one. Left out are rules that a later
one always overrides, and exceptions that an earlier, stricter rule would override here.
https://opencode.ai/docs/permissions
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from msgspec import Struct

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_settings, shorten_value
from acp_agent.config.policy_types import ModeName, RuleConfig
from acp_agent.permissions.policy.rules import MAIN_AGENT, Effect

_EFFECTS: tuple[Effect, ...] = get_args(Effect)
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_TOOLS = {
    "bash": "Bash", "shell": "Bash", "edit": "Edit", "read": "Read", "webfetch": "WebFetch",
    "websearch": "WebSearch", "task": "Agent", "skill": "Skill",
}  # fmt: skip
# Opencode's names of its other tools; any other name is a tool of an MCP server.
_BUILT_IN_TOOLS = frozenset(
    {"glob", "grep", "list", "lsp", "todowrite", "todoread", "question"}
    | {"codesearch", "external_directory", "doom_loop", "plan_enter", "plan_exit"}
)
_HOST = re.compile(r"(?:(?:https?|\*)://)?(?P<host>[A-Za-z0-9.*-]+)(?:/?\*{0,2})?")


class OrderedRule(Struct, frozen=True):
    """A rule in a list in which the last matching rule decides."""

    tool: str
    pattern: str
    effect: Effect
    justification: str = ""

    @property
    def text(self) -> str:
        """Return the rule as shown in messages."""
        return f"{self.tool}: {shorten_value(self.pattern)}: {self.effect}"

    def covers(self, other: OrderedRule) -> bool:
        """Return whether it matches everything that the other rule matches."""
        return _matches(self.tool, other.tool) and _matches(self.pattern, other.pattern)


def read_opencode(file: Path) -> Translation:
    """Translate the permissions of a configuration file. Raises InvalidInputError."""
    translation = Translation(file)
    settings = read_settings(file)
    servers = settings.get("mcp")
    names = [name for name in servers if isinstance(name, str)] if isinstance(servers, dict) else []
    _add(translation, settings, (), names)
    agents = settings.get("agent", {})
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        if not isinstance(agent, dict):
            continue
        if name == "plan" and ("permission" in agent or "permissions" in agent):
            translation.skip(
                "agent.plan", translate("use the plan mode instead, which changes nothing")
            )
            continue
        _add(translation, agent, (MAIN_AGENT if name == "build" else str(name),), names)
    return translation


def _add(
    translation: Translation,
    settings: dict[str, object],
    agents: Sequence[str],
    servers: Sequence[str],
) -> None:
    rules = [
        *_read_table(settings.get("permission"), translation),
        *_read_list(settings.get("permissions"), translation),
    ]
    add_ordered(translation, rules, servers, agents=agents)


def add_ordered(
    translation: Translation,
    rules: Sequence[OrderedRule],
    servers: Sequence[str],
    *,
    agents: Sequence[str] = (),
    modes: Sequence[ModeName] = (),
) -> None:
    """Add rules where the last match decides, as rules where the strictest decides.

    Args:
        translation: receives the rules, and what has no counterpart.
        servers: names of MCP servers, which prefix the names of their tools.
        agents: the agents that the rules apply to; all if empty.
        modes: the modes that the rules apply in; all if empty.
    """
    remaining: list[OrderedRule] = []
    for index, rule in enumerate(rules):
        covering_rules = [later for later in rules[index + 1 :] if later.covers(rule)]
        if not covering_rules:
            remaining.append(rule)
        elif covering_rules[-1].effect != rule.effect:
            translation.skip(rule.text, translate("a later rule always overrides it"))
    rules = remaining
    for index, rule in enumerate(rules):
        later = [later_rule for later_rule in rules[index + 1 :] if rule.covers(later_rule)]
        if rule.pattern == "*" and rule.effect == "ask":
            translation.skip(rule.text, translate("the mode `ask` already asks about this"))
            continue
        if (
            rule.pattern == "*"
            and rule.effect == "deny"
            and any(later_rule.effect != "deny" for later_rule in later)
        ):
            translation.skip(
                rule.text,
                translate(
                    "exceptions from a refusal are not supported; calls without an allow "
                    "rule are asked about"
                ),
            )
            continue
        if _is_overridden(rule, rules[:index]):
            translation.skip(
                rule.text,
                translate("an earlier, stricter rule matches it too and takes precedence here"),
            )
            continue
        for text in _texts(rule, servers, translation):
            config = RuleConfig(
                rule=text, agents=list(agents), modes=list(modes), justification=rule.justification
            )
            translation.add(rule.effect, config, source_text=rule.text)


def _is_overridden(rule: OrderedRule, earlier: Sequence[OrderedRule]) -> bool:
    return any(
        earlier_rule.covers(rule)
        and earlier_rule.pattern != "*"
        and _STRICTNESS[earlier_rule.effect] > _STRICTNESS[rule.effect]
        for earlier_rule in earlier
    )


def _read_table(value: object, translation: Translation) -> Iterator[OrderedRule]:
    if isinstance(value, str):
        value = {"*": value}
    for tool, actions in value.items() if isinstance(value, dict) else ():
        patterns = actions if isinstance(actions, dict) else {"*": actions}
        for pattern, action in patterns.items():
            if action in _EFFECTS:
                yield OrderedRule(str(tool), str(pattern), action)
            else:
                translation.skip_value(
                    str(tool), actions, translate("its action is not allow, ask or deny")
                )


def _read_list(value: object, translation: Translation) -> Iterator[OrderedRule]:
    """Yield the rules of the newer form, a list of objects."""
    for entry in value if isinstance(value, list) else []:
        table = entry if isinstance(entry, dict) else {}
        effect = table.get("effect")
        if effect in _EFFECTS:
            yield OrderedRule(
                str(table.get("action", "*")), str(table.get("resource", "*")), effect
            )
        else:
            translation.skip(
                shorten_value(entry), translate("its action is not allow, ask or deny")
            )


def _matches(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a text, or everything that another pattern matches."""
    if pattern.endswith(" *") and text == pattern[:-2]:
        return True
    expressions = (
        ".*" if part == "*" else "." if part == "?" else re.escape(part) for part in pattern
    )
    return re.fullmatch("".join(expressions), text, re.DOTALL) is not None


def _texts(rule: OrderedRule, servers: Sequence[str], translation: Translation) -> Iterator[str]:
    """Yield our rules for a rule of opencode."""
    if rule.tool == "*":
        if rule.pattern != "*":
            translation.skip(rule.text, translate("the tool of the pattern is missing"))
        elif rule.effect == "allow":
            yield from ("Bash", "Edit", "WebFetch", "WebSearch")
        else:
            yield "*"
        return
    if rule.tool in {"task", "skill"} and rule.effect == "allow":
        return  # needs no question here
    if rule.tool in _BUILT_IN_TOOLS:
        if rule.effect != "allow":
            translation.skip(rule.text, translate("rules for this tool are not supported here"))
        return
    name = _TOOLS.get(rule.tool)
    if name is None:
        yield _mcp(rule.tool, servers)
    elif rule.pattern == "*":
        yield name
    elif name == "Bash":
        yield from _command(rule, translation)
    elif name in {"Agent", "Skill"}:
        yield f"{name}({rule.pattern})"
    elif name in {"Edit", "Read"}:
        yield f"{name}({_path(rule)})"
    else:
        host = _HOST.fullmatch(rule.pattern)
        if host is None or name != "WebFetch":
            translation.skip(rule.text, translate("web rules can only name a host"))
        else:
            yield f"WebFetch(domain:{host['host']})"


def _command(rule: OrderedRule, translation: Translation) -> Iterator[str]:
    if "?" in rule.pattern:
        translation.skip(rule.text, translate("`?` is not supported in command rules"))
    else:
        yield f"Bash({rule.pattern})"


def _path(rule: OrderedRule) -> str:
    """Return a gitignore pattern for a path in which `*` also matches slashes."""
    pattern = rule.pattern
    for home in ("$HOME/", "~/"):
        if pattern.startswith(home):
            return f"~/{_over_slashes(pattern.removeprefix(home))}"
    if pattern.startswith("/"):
        return f"//{_over_slashes(pattern[1:])}"
    anchored = "/" if rule.effect == "allow" and pattern[:1] != "*" else ""
    return anchored + _over_slashes(pattern.removeprefix("./"))


def _over_slashes(pattern: str) -> str:
    segments = pattern.split("/")
    if len(segments) == 1:
        return pattern
    return "/".join(
        segment
        if segment in {"**", ""}
        else "**"
        if segment == "*"
        else f"**/{segment}"
        if segment[0] == "*"
        else segment
        for segment in segments
    ).replace("**/**", "**")


def _mcp(tool: str, servers: Sequence[str]) -> str:
    """Return the rule of an MCP tool, which opencode names `server_tool`."""
    server = next((name for name in servers if tool.startswith(f"{name}_")), tool.partition("_")[0])
    return f"mcp__{server}__{tool[len(server) + 1 :] or '*'}"
