"""Runs the benchmarks and prints their table: `make bench`, or `python -m benchmarks NAME …`."""

from __future__ import annotations

import sys

from benchmarks import (
    checkpoints,
    context,
    dialects,
    extensions,
    first_prompt,
    journal,
    languageservers,
    memory,
    policy,
    remote,
    requests,
    sandbox,
    scrub,
    sessions,
    startup,
    streaming,
    versions,
    view,
)
from benchmarks.harness import report as harness
from benchmarks.table import HEADER, format_row

ALL = {
    "startup": startup.rows,
    "first_prompt": first_prompt.rows,
    "streaming": streaming.rows,
    "memory": memory.rows,
    "sessions": sessions.rows,
    "policy": policy.rows,
    "requests": requests.rows,
    "extensions": extensions.rows,
    "sandbox": sandbox.rows,
    "scrub": scrub.rows,
    "journal": journal.rows,
    "context": context.rows,
    "languageservers": languageservers.rows,
    "dialects": dialects.rows,
    "remote": remote.rows,
    "checkpoints": checkpoints.rows,
    "versions": versions.rows,
    "view": view.rows,
    "harness": harness.rows,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; returns the exit status."""
    if names[:1] == ["harness"]:  # the one that has options and tables of its own
        return harness.main(names[1:])
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.stderr.write(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}\n")
        return 2
    print(HEADER)
    for name in names or ALL:
        sys.stderr.write(f"{name} …\n")
        for row in ALL[name]():
            print(format_row(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
