"""Types that mean the same in both versions of the protocol, and what all types derive from.

Names are the schema's: a type `X` is `$defs/X`, attributes are its properties in snake_case. A
field that is None is left out; where leaving out and null mean different things, left out is UNSET.
What a docstring or comment calls UNSTABLE is in the unstable schema only, and may change.

Words that the protocol leaves open are plain strings, and unions that it leaves open have a variant
`Other…`, which keeps what it does not know as it came.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, dataclass_transform

from msgspec import UNSET, Meta, Struct, StructMeta, UnsetType, field

from protocol.codec.tolerance import Lenient, OpenUnion

JsonObject: TypeAlias = dict[str, Any]  # JSON that is only passed on
AbsolutePath: TypeAlias = str  # of the system that the agent runs on
MediaType: TypeAlias = str

SessionId: TypeAlias = str
MessageId: TypeAlias = str
ToolCallId: TypeAlias = str
TerminalId: TypeAlias = str
PlanId: TypeAlias = str
PermissionOptionId: TypeAlias = str
SessionModeId: TypeAlias = str
SessionConfigId: TypeAlias = str
SessionConfigValueId: TypeAlias = str
SessionConfigGroupId: TypeAlias = str
SessionListCursor: TypeAlias = str
AuthMethodId: TypeAlias = str
ElicitationId: TypeAlias = str
CompactionId: TypeAlias = str
ProviderId: TypeAlias = str  # UNSTABLE, as the two below
McpServerAcpId: TypeAlias = str
McpRequestId: TypeAlias = str

UInt16 = Annotated[int, Meta(ge=0, le=2**16 - 1)]
UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
UInt64 = Annotated[int, Meta(ge=0)]  # msgspec has no limit above 2**63 - 1
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
ProtocolVersion: TypeAlias = UInt16

# Tags that are the same in every stop reason; `error` has a type of its own.
StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"
]
# UNSTABLE: "append", "override", or a word that later versions add.
SystemPromptMode: TypeAlias = str
# UNSTABLE: "exclude", "include", "only", or a word that later versions add.
SessionArchiveFilter: TypeAlias = str


class _BareType(StructMeta):
    """Makes types frozen, with keyword arguments only, and tagged as their union asks for."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> _BareType:
        """Make a type."""
        unions = [base for base in bases if issubclass(base, OpenUnion)]
        if unions and "tag" in config:
            config["tag_field"] = unions[0].discriminator
        return super().__new__(
            mcs, name, bases, namespace, **{"frozen": True, "kw_only": True} | config
        )


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Bare(Struct, metaclass=_BareType, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """A type without room for metadata.

    Out of the collector's sight (`gc`): a message is a tree, and a replay makes thousands.
    """


class Wire(Bare):
    """A type of the protocol. `meta` is `_meta`: what both sides may attach, kept as it is."""

    meta: Lenient[JsonObject | None] = field(name="_meta", default=None)


class Upsert(Bare):
    """A change of something with an id: UNSET is unchanged, None is cleared.

    So is `meta`, whose keys are merged one by one into what the receiver has.
    """

    meta: Lenient[JsonObject | UnsetType | None] = field(name="_meta", default=UNSET)


class Implementation(Wire):
    """A program's name, its version, and its title for people."""

    name: str
    version: str
    title: Lenient[str | None] = None


class HttpHeader(Wire):
    """A header to send with each HTTP request."""

    name: str
    value: str


class EnvVariable(Wire):
    """An environment variable to set."""

    name: str
    value: str


class SessionDeleteCapabilities(Wire):
    """The agent has `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Wire):
    """The agent takes further folders for a session."""


class SessionSystemPromptOverrideCapabilities(Wire):
    """UNSTABLE. The agent takes a system prompt that replaces its own."""


class SessionSystemPromptModeCapabilities(Wire):
    """UNSTABLE. What a client's system prompt may do beyond being appended."""

    override: Lenient[SessionSystemPromptOverrideCapabilities | None] = None


class SessionSystemPromptCapabilities(Wire):
    """UNSTABLE. The agent takes a system prompt for a session."""

    mode: Lenient[SessionSystemPromptModeCapabilities | None] = None


class SessionForkCapabilities(Wire):
    """UNSTABLE. The agent has `session/fork`."""


class SessionArchiveCapabilities(Wire):
    """UNSTABLE. The agent has `session/archive` and `session/unarchive`."""


class SessionStatusCapabilities(Wire):
    """UNSTABLE. The agent has `session/status`."""


class SessionTitleCapabilities(Wire):
    """UNSTABLE. The agent has `session/set_title`."""


class AuthStatusCapabilities(Wire):
    """UNSTABLE. The agent has `auth/status`."""


class ProvidersCapabilities(Wire):
    """UNSTABLE. The agent has `providers/list`, `providers/set` and `providers/disable`."""


class ElicitationFormCapabilities(Wire):
    """The client shows forms."""


class ElicitationUrlCapabilities(Wire):
    """The client opens addresses for the user."""


class ElicitationCapabilities(Wire):
    """How the client can ask the user something."""

    form: Lenient[ElicitationFormCapabilities | None] = None
    url: Lenient[ElicitationUrlCapabilities | None] = None


class DeleteSessionRequest(Wire):
    """Delete a session for good."""

    session_id: SessionId


class DeleteSessionResponse(Wire):
    """The session is deleted."""


class CloseSessionRequest(Wire):
    """Stop a session and free what it uses."""

    session_id: SessionId


class CloseSessionResponse(Wire):
    """The session is closed."""


class Usage(Wire):
    """UNSTABLE. Tokens that were used; those with a None are not counted apart."""

    total_tokens: UInt64
    input_tokens: UInt64
    output_tokens: UInt64
    thought_tokens: Lenient[UInt64 | None] = None
    cached_read_tokens: Lenient[UInt64 | None] = None
    cached_write_tokens: Lenient[UInt64 | None] = None


class Cost(Wire):
    """An amount in a currency (ISO 4217)."""

    amount: float
    currency: str
