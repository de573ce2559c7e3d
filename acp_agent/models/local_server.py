"""A local model's server, in a process of its own: `python -m acp_agent.models.local_server FILE`.

It says where it answers, as one line of JSON on standard output, and ends when its standard input
does, which the system closes when the agent ends, however that happens.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

WINDOW = 8192  # tokens, SmolLM2's


def main(path: str) -> None:
    """Serve the model in a GGUF file until standard input ends."""
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library prints to standard output too
    try:
        xllamacpp = importlib.import_module("xllamacpp")  # here, so that its failure is told
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.n_ctx = WINDOW
        params.n_parallel = 1
        # Two threads wait for each other on a machine that has other work.
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.ui = False
        params.sampling.temp = 0.0
        server = xllamacpp.Server(params)
        address = str(server.listening_address)
    except Exception as error:  # noqa: BLE001 - whatever it is, the agent is told
        told.write(json.dumps({"error": " ".join(f"{error}".split())[:500]}) + "\n")
        told.flush()
        os._exit(1)
    told.write(json.dumps({"address": address}) + "\n")
    told.flush()
    while os.read(0, 1024):
        pass
    os._exit(0)  # a request under way would hold an ordinary end up


if __name__ == "__main__":
    main(sys.argv[1])
