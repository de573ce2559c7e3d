"""What every type of the protocol shares.

Names are the schema's: a type `X` is `$defs/X`, attributes are its properties in snake_case. A
field that is None is left out; where leaving out and null mean different things, left out is UNSET.
What a docstring or comment calls UNSTABLE is in the unstable schema only, and may change.

Words that the protocol leaves open are plain strings, and unions that it leaves open have a variant
`Other…`, which keeps what it does not know as it came.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from protocol.codec.marks import Lenient

JsonObject: TypeAlias = dict[str, Any]  # JSON that is only passed on

SessionId: TypeAlias = str
MessageId: TypeAlias = str
ToolCallId: TypeAlias = str
TerminalId: TypeAlias = str
PlanId: TypeAlias = str
PermissionOptionId: TypeAlias = str
SessionConfigId: TypeAlias = str
SessionConfigValueId: TypeAlias = str
SessionConfigGroupId: TypeAlias = str
SessionListCursor: TypeAlias = str
AuthMethodId: TypeAlias = str
ElicitationId: TypeAlias = str
CompactionId: TypeAlias = str
RequestId: TypeAlias = int | str
ProviderId: TypeAlias = str  # UNSTABLE, as the two below
McpServerAcpId: TypeAlias = str
McpRequestId: TypeAlias = str

AbsolutePath: TypeAlias = str  # of the system that the agent runs on
MediaType: TypeAlias = str

UInt16 = Annotated[int, Meta(ge=0, le=2**16 - 1)]
UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
UInt64 = Annotated[int, Meta(ge=0)]  # msgspec has no limit above 2**63 - 1
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Bare(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A type without room for metadata.

    Out of the collector's sight (`gc`): a message is a tree, and a replay makes thousands.
    """


class Wire(Bare, frozen=True, kw_only=True):
    """A type of the protocol. `meta` is `_meta`: what both sides may attach, kept as it is."""

    meta: Lenient[JsonObject | None] = field(name="_meta", default=None)


class Upsert(Bare, frozen=True, kw_only=True):
    """What changed about something with an id: UNSET is unchanged, None is cleared.

    So is `meta`, whose keys are merged one by one into what the receiver has.
    """

    meta: Lenient[JsonObject | UnsetType | None] = field(name="_meta", default=UNSET)
