"""The oldest Neovim that the plugin is for, as a release of Debian has it, in the user's cache.

Its packages come through apt, from the mirror that this machine uses, into a folder of their own:
nothing is installed, and apt's own state is left alone. They bring their C library along, so that
they run beside an older or a newer one.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.editors.end_to_end.others_sources import cache

VERSION = "0.10"
RELEASE = "trixie"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SECONDS = 300

_PROGRAM = """#!/bin/sh
root='{root}'
libraries="$root/usr/lib/$(uname -m)-linux-gnu"
export VIMRUNTIME="$root/usr/share/nvim/runtime"
exec "$libraries"/ld-linux-*.so.* --library-path "$libraries" "$root/usr/bin/nvim" \\
  --cmd "set rtp+=$root/usr/lib/nvim" "$@"
"""


def oldest_neovim() -> Path:
    """The program, fetched once; skips the test where no apt of Debian's can fetch it."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and _KEYS.exists()):
        pytest.skip(f"Neovim {VERSION} comes from Debian, and there is no apt here with its keys")
    cache().mkdir(parents=True, exist_ok=True)
    folder = cache() / f"neovim-{VERSION}"
    program = folder / "nvim"
    with (cache() / "lock-neovim").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(folder)
            program.write_text(_PROGRAM.format(root=folder / "root"))
            program.chmod(0o755)
    return program


def _unpack(folder: Path) -> None:
    apt = folder / "apt"
    for name in ("etc/sources.list.d", "state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True)
    (apt / "state" / "status").touch()  # nothing is installed there: all that it needs comes along
    mirror = _run(
        *("apt-get", "indextargets", "--format", "$(REPO_URI)"),
        *("Created-By: Packages", "Origin: Debian", "Label: Debian"),
    ).split()
    if not mirror:
        pytest.skip("apt knows no mirror of Debian's here")
    (apt / "etc" / "sources.list.d" / "oldest.sources").write_text(
        f"Types: deb\nURIs: {mirror[0]}\nSuites: {RELEASE}\nComponents: main\nSigned-By: {_KEYS}\n"
    )
    options = [
        *("-o", f"Dir::Etc={apt / 'etc'}", "-o", f"Dir::Cache={apt / 'cache'}"),
        *("-o", f"Dir::State={apt / 'state'}", "-o", f"Dir::State::status={apt / 'state/status'}"),
        *("-o", "APT::Sandbox::User="),
    ]
    _run("apt-get", *options, "update")
    _run(
        *("apt-get", *options, "install", "--yes", "--download-only", "--no-install-recommends"),
        "neovim",
    )
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        _run("dpkg-deb", "--extract", str(package), str(folder / "root"))
    shutil.rmtree(apt)


def _run(*command: str) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:1])} could not fetch it: {done.stderr[-1000:]}")
    return done.stdout
