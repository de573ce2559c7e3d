#!/usr/bin/env python3
"""Takes the options of `docker run` that the agent uses, and does the same with bubblewrap.

    docker run [OPTION ...] IMAGE [ARGUMENT ...]
    docker rm --force NAME

The image is this machine without the folders of its users. $DOCKER_LOG gets a line of JSON for each
call. A container goes on where this program is killed, as one of a real engine does.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

FLAGS = {"--rm", "--init", "--interactive", "--read-only"}
LISTED = {"--mount", "--security-opt", "--cap-drop", "--cap-add", "--ulimit"}
EMPTY = ("/home", "/root", "/work", "/srv", "/opt", "/mnt", "/media", "/run")
IMAGE_PATH = "/usr/local/bin:/usr/bin:/bin"


def parse(arguments: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The options by name, and what follows them."""
    options: dict[str, list[str]] = {}
    while arguments and arguments[0].startswith("--"):
        name = arguments.pop(0)
        options.setdefault(name, []).append("" if name in FLAGS else arguments.pop(0))
    assert all(len(values) == 1 for name, values in options.items() if name not in LISTED)
    return options, arguments


def mounts(values: list[str]) -> list[str]:
    argv: list[str] = []
    fields = [
        dict(one.partition("=")[::2] for one in next(csv.reader([value]))) for value in values
    ]
    for mount in sorted(fields, key=lambda one: one["dst"].count("/")):
        if mount["type"] == "tmpfs":
            argv += ["--perms", mount["tmpfs-mode"], "--tmpfs", mount["dst"]]
        else:
            kind = "--ro-bind" if "readonly" in mount else "--bind"
            argv += [kind, mount["src"], mount["dst"]]
    return argv


def run(arguments: list[str]) -> int:
    options, (image, *argv) = parse(arguments)
    if image != "image-that-is-there":
        sys.stderr.write(f"No such image: {image}\n")
        return 125
    log = {"options": options, "image": image, "argv": argv, "environ": dict(os.environ)}
    variables = dict(
        line.partition("=")[::2] for line in Path(options["--env-file"][0]).read_text().splitlines()
    )
    with open(os.environ["DOCKER_LOG"], "a") as file:
        file.write(json.dumps(log | {"variables": variables}) + "\n")
    command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    command += ["--unshare-pid", "--unshare-ipc", "--unshare-net", "--cap-drop", "ALL"]
    for folder in EMPTY:
        command += ["--tmpfs", folder] if os.path.isdir(folder) else []
    command += [*mounts(options["--mount"]), "--chdir", options["--workdir"][0], "--clearenv"]
    for name, value in ({"PATH": IMAGE_PATH} | variables).items():
        command += ["--setenv", name, value]
    command += ["--", *options["--entrypoint"], *argv]
    process = subprocess.Popen(command, start_new_session=True)
    number = Path(os.environ["DOCKER_LOG"]).with_name(options["--name"][0])
    number.write_text(str(process.pid))
    status = process.wait()
    number.unlink(missing_ok=True)
    return status if status >= 0 else 128 - status


def remove(name: str) -> int:
    number = Path(os.environ["DOCKER_LOG"]).with_name(name)
    if not number.exists():
        return 1
    os.killpg(int(number.read_text()), signal.SIGKILL)
    number.unlink()
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "run":
        sys.exit(run(sys.argv[2:]))
    sys.exit(remove(sys.argv[3]))
