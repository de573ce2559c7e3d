"""Our own types of the protocol agree with those of lsprotocol, which has all of it."""

from __future__ import annotations

import msgspec
import pytest

from acp_agent.language_servers import wire
from protocol.codec import typed_json
from protocol.jsonrpc.methods import Method

types = pytest.importorskip("lsprotocol.types")
converters = pytest.importorskip("lsprotocol.converters")


def test_the_offered_capabilities_exist_in_the_protocol() -> None:
    params = {"processId": 1, "rootUri": None, "capabilities": wire.client_capabilities()}
    converter = converters.get_converter()
    read = converter.structure(params, types.InitializeParams)
    # What the protocol does not have is dropped on the way.
    encoded = msgspec.json.decode(msgspec.json.encode(converter.unstructure(read)))
    assert encoded["capabilities"] == params["capabilities"]


def test_every_answered_method_exists_in_the_protocol() -> None:
    for method in vars(wire).values():
        if isinstance(method, Method):
            assert method.name in types.METHOD_TO_TYPES


def test_a_report_of_lsprotocol_is_read() -> None:
    location = types.Range(types.Position(1, 2), types.Position(1, 5))
    diagnostic = types.Diagnostic(location, "m", types.DiagnosticSeverity.Warning, "c", source="s")
    report = types.RelatedFullDocumentDiagnosticReport([diagnostic], result_id="1")
    data = msgspec.json.encode(converters.get_converter().unstructure(report))
    read = typed_json.decode(data, wire.DiagnosticReport)
    (item,) = read.items
    assert (item.message, item.severity, item.code, item.source) == ("m", 2, "c", "s")
    assert (item.range.start.line, item.range.start.character) == (1, 2)
    assert read.result_id == "1"
