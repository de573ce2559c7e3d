"""Serve a local model in a separate process: `python -m acp_agent.models.local_server FILE`.

The server prints its address as one line of JSON to standard output. It exits when its standard
input ends. The system closes that input when the agent ends, even if the agent is killed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

WINDOW = 8192  # tokens, SmolLM2's


def main(path: str) -> None:
    """Serve the model in a GGUF file until standard input ends."""
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints to standard output too
    try:
        xllamacpp = importlib.import_module("xllamacpp")  # here, so that its failure is reported
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx = WINDOW
        params.n_parallel = 1
        # On a busy machine, several threads would wait for each other.
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.ui = False
        params.sampling.temp = 0.0
        server = xllamacpp.Server(params)
        address = str(server.listening_address)
    except Exception as error:  # noqa: BLE001 - every error is reported to the agent
        output.write(json.dumps({"error": " ".join(f"{error}".split())[:500]}) + "\n")
        output.flush()
        os._exit(1)
    output.write(json.dumps({"address": address}) + "\n")
    output.flush()
    while os.read(0, 1024):
        pass
    os._exit(0)  # a normal exit would wait for running requests


if __name__ == "__main__":
    main(sys.argv[1])
