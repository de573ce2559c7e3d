"""Any bytes at all to a bare connection: the right answers, each once, and nothing breaks.

ACP_AGENT_FUZZ sets how many inputs are tried (`make fuzz`), ACP_AGENT_FUZZ_SEED the first seed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.protocol.byte_driver import FuzzedProcess
from tests.protocol.byte_fuzz import ByteFuzz
from tests.protocol.byte_reference import RESULT, Reference
from tests.protocol.peer_process import ROOT

INPUTS = int(os.environ.get("ACP_AGENT_FUZZ", "1500"))
SEED = int(os.environ.get("ACP_AGENT_FUZZ_SEED", "0"))
ROUND = 100  # inputs between two looks at whether good requests still work
LIMIT = 100_000


def prompt(text: str) -> str:
    return json.dumps(
        {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}, sort_keys=True
    )


OUTCOMES = {
    ("initialize", '{"protocolVersion": 1}'): RESULT,
    ("initialize", '{"protocolVersion": "1"}'): -32602,
    ("initialize", "{}"): -32602,
    ("session/new", '{"cwd": "/", "mcpServers": []}'): RESULT,
    ("session/new", '{"cwd": 5, "mcpServers": []}'): -32602,
    ("session/prompt", prompt("say x")): RESULT,
    ("session/prompt", prompt("slow xy")): RESULT,
    ("session/prompt", prompt("crash lookup")): -32002,
    ("session/prompt", prompt("crash")): -32603,
    ("session/prompt", '{"sessionId": "s", "prompt": 5}'): -32602,
    ("session/prompt", "[]"): -32602,
    ("session/cancel", '{"sessionId": "s"}'): RESULT,
    ("session/cancel", '{"sessionId": 5}'): -32602,
}
NOTIFICATIONS = [
    ("session/cancel", {"sessionId": "s"}),
    ("session/cancel", {"sessionId": "raise"}),
    ("session/cancel", {}),
    ("session/prompt", {}),
    ("session/unknown", [1]),
]


@pytest.mark.covers("T2", "T3", "T4")
@pytest.mark.timeout(max(120, INPUTS // 20))
@pytest.mark.parametrize("batches", [False, True], ids=["single", "batches"])
def test_every_line_gets_one_correct_answer_and_valid_requests_still_work(
    tmp_path: Path, batches: bool
) -> None:
    reference = Reference(OUTCOMES, batches=batches, limit=LIMIT)
    command = [
        *(sys.executable, "-W", "error", str(Path(__file__).with_name("peer.py"))),
        *(f"--limit={LIMIT}", *(["--batches"] if batches else [])),
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    log = tmp_path / "stderr"
    with FuzzedProcess(command, reference=reference, log=log, env=environ) as peer:
        peer.ask("initialize", {"protocolVersion": 1})
        peer.ask("session/new", {"cwd": "/", "mcpServers": []})
        for start in range(0, INPUTS, ROUND):
            seed = SEED + start // ROUND
            fuzz = ByteFuzz(
                seed, OUTCOMES, notifications=NOTIFICATIONS, long=(50_000, LIMIT + 1, 300_000)
            )
            peer.round(fuzz, min(ROUND, INPUTS - start), name=f"seed {seed}")
            assert peer.ask("session/prompt", json.loads(prompt("say fresh")))["stopReason"]
        assert peer.end() == 0
    assert b"a message could not be handled" not in log.read_bytes()
