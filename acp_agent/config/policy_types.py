"""The types of the permissions table in a configuration file of the user or of a project."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

PolicyRuleText = Annotated[
    str, Meta(pattern=r"^\s*[A-Za-z*]", examples=["Bash(npm run test:*)", "Edit(src/**)"])
]
ModeName = Literal["ask", "accept-edits", "draft", "plan", "full"]
TrustedFolder = Annotated[str, Meta(pattern=r"^[/~]", examples=["~/work"])]
# A relative path without `.` or `..` components or empty ones.
DraftFolder = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=r"^(?![/~])(?!(?:.*/)?\.{0,2}/?(?:/|$))[^\x00\n]+$(?!\n)",
        examples=["docs/drafts"],
    ),
]


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A table of a configuration file."""


class RuleConfig(Table, frozen=True, kw_only=True):
    """A rule of the policy with what belongs to it."""

    rule: Annotated[
        PolicyRuleText, Meta(description="What it is about: a tool, and which uses of it.")
    ]
    match: Annotated[
        list[str], Meta(description="Examples that it is about; checked when it is read.")
    ] = []
    not_match: Annotated[
        list[str], Meta(description="Examples that it is not about; checked when it is read.")
    ] = []
    justification: Annotated[
        str, Meta(max_length=500, description="Why; you and the model are told when it refuses.")
    ] = ""
    modes: Annotated[
        list[ModeName], Meta(description="The modes that it holds in. Empty: all.")
    ] = []
    agents: Annotated[
        list[str],
        Meta(description="The agents that it holds for; main is the session's own. Empty: all."),
    ] = []


class PermissionsConfig(Table, frozen=True, kw_only=True):
    """The policy: what runs without a question, is always asked about, or never runs."""

    allow: Annotated[
        list[PolicyRuleText | RuleConfig], Meta(description="What runs without a question.")
    ] = []
    ask: Annotated[
        list[PolicyRuleText | RuleConfig],
        Meta(description="What is asked about in every mode; goes before allow."),
    ] = []
    deny: Annotated[
        list[PolicyRuleText | RuleConfig],
        Meta(description="What never runs; goes before ask and allow."),
    ] = []
