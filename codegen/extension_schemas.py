"""Generate the JSON Schemas of our own methods, for those who write clients."""

from __future__ import annotations

from inspect import cleandoc

import msgspec

from acp_agent.config.schema import schema_text
from acp_agent.server.extensions import types
from acp_agent.server.v1.handlers import STEERING

FILE_NAME = "extensions.schema.json"

# Each method with the types of what it takes and gives.
METHODS: dict[str, tuple[type[types.ExtensionType], type[types.ExtensionType]]] = {
    "_acp-agent/session/export": (types.ExportSessionRequest, types.ExportSessionResponse),
    "_acp-agent/checkpoints/list": (types.ListCheckpointsRequest, types.ListCheckpointsResponse),
    "_acp-agent/checkpoints/restore": (
        types.RestoreCheckpointRequest,
        types.RestoreCheckpointResponse,
    ),
    "_acp-agent/resources/list": (types.ListResourcesRequest, types.ListResourcesResponse),
    STEERING.name: (types.SteerRequest, types.SteerResponse),
}


def extensions_schema() -> str:
    """Return the schemas as JSON text, which depends only on the types.

    Every type is in `$defs`; those that belong to a method say so in `x-method` and `x-side`, as in
    the protocol's own schema.
    """
    message_types = [message_type for pair in METHODS.values() for message_type in pair]
    _, definitions = msgspec.json.schema_components(
        [*message_types, types.PromptMarker, types.ForkMarker], ref_template="#/$defs/{name}"
    )
    for definition in definitions.values():  # Python 3.13 removes the indentation itself
        if "description" in definition:
            definition["description"] = cleandoc(definition["description"])
    for method, (request, response) in METHODS.items():
        for message_type in (request, response):
            definitions[message_type.__name__] |= {"x-method": method, "x-side": "agent"}
    title = "acp-agent's extensions of the Agent Client Protocol"
    return schema_text({"title": title, "$defs": definitions})
