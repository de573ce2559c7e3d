"""A small world with secrets, servers, processes and repositories that programs try to get at."""

from __future__ import annotations

import ctypes
import os
import pty
import select
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from tests.sandbox.escape_cases import SECRET, Case, Corpus

SHARED_KEY = 0x3F9C1E
EVIL = "#!/bin/sh\n: > {mine}/ran\ncat\nexit 0\n"
IDENTITY = {
    f"GIT_{who}_{what}": f"{what.lower()}@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
RUN_SOCKETS = (
    "/run/docker.sock",
    "/run/dbus/system_bus_socket",
    "/run/user/{user}/bus",
    "/run/user/{user}/systemd/private",
    "/run/user/{user}/wayland-0",
    "/run/user/{user}/gnupg/S.gpg-agent",
    "/tmp/.X11-unix/X0",
    "/tmp/ssh-escape/agent.1",
    "/tmp/tmux-{user}/default",
)


class World:
    """Everything outside, with what was done to it."""

    def __init__(self, base: Path, corpus: Corpus) -> None:
        self.base = base
        self.cases = corpus.cases
        self._corpus = corpus
        self.home, self.outside, self.project = base / "home", base / "outside", base / "project"
        self.heard: list[bytes] = []
        self.victims: dict[str, subprocess.Popen[bytes]] = {}
        self.environ: dict[str, str] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._leader, self._terminal = pty.openpty()
        self._pipe = -1

    def build(self) -> None:
        """Make all of it."""
        for path in self._corpus.secrets:
            _write(self.home / path, f"{SECRET}-{path}\n")
        for path in self._corpus.project:
            _write(self.base / "filled" / path, "before\n")
        for folder in (self.base / "fresh", Path("/tmp/other-session")):
            folder.mkdir()
        _write(Path("/tmp/other-session/note"), f"{SECRET}-temporary\n")
        _write(Path("/dev/shm/escape"), f"{SECRET}-shared\n")
        _share(f"{SECRET}-system-v")
        self._serve()
        template = self.base / "template"
        (self.base / "repositories").mkdir()
        environ = os.environ | IDENTITY | {"GIT_CONFIG_GLOBAL": "/dev/null"}
        for command in ("init -q --template= .", "commit -q --allow-empty -m first"):
            template.mkdir(exist_ok=True)
            subprocess.run(["git", *command.split()], cwd=template, check=True, env=environ)
        for name in ("hooks", "info"):
            (template / ".git" / name).mkdir()
        for case in self.cases:
            mine = self.outside / case.name
            _write(mine / "file", "before\n")
            (mine / "folder").mkdir()
            if case.repo:
                self._make_repository(template, case)
            elif not case.folder:
                for name in ("folder-of-project", "folder-to-swap", "folder-for-key"):
                    (self.project / case.name / name).mkdir(parents=True)
                (self.project / case.name / "link-to-key").symlink_to(self.home / ".ssh/id_ed25519")
            if case.check == "process":
                self.victims[case.name] = subprocess.Popen(
                    [f"escape-victim-{case.name}"],
                    executable="/bin/cat",
                    stdin=subprocess.PIPE,
                    env={"PASSWORD": f"{SECRET}-victim"},
                    start_new_session=True,
                )
        self.environ = (
            {
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "OUT": str(self.outside),
                "TERMINAL": os.ttyname(self._terminal),
                "SHARED": str(SHARED_KEY),
                "OTHER_TEMPORARY": "/tmp/other-session",
            }
            | IDENTITY
            | self.environ
        )

    def _make_repository(self, template: Path, case: Case) -> None:
        folder = self.base / "repositories" / case.name
        subprocess.run(["cp", "-r", template, folder], check=True)
        _write(folder / "README", "text\n")
        (folder / "older/a/b/c").mkdir(parents=True)
        _write(folder / "evil", EVIL.format(mine=self.outside / case.name))
        (folder / "evil").chmod(0o755)
        _write(folder / "scripts/hook", "#!/bin/sh\n")
        (folder / "scripts/hook").chmod(0o755)
        (folder / ".git/hooks/pre-commit").symlink_to("../../scripts/hook")

    def _serve(self) -> None:
        user = os.getuid()
        for path in RUN_SOCKETS:
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, path.format(user=user))
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.home / ".service/socket"))
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.outside / "service.socket"))
        self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.outside / "datagram.socket"))
        self._listen_elsewhere(self.outside / "relative")
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0escape")
        self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, "\0escape-datagram")
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0/tmp/.X11-unix/X0")
        for name, kind in (("TCP", socket.SOCK_STREAM), ("UDP", socket.SOCK_DGRAM)):
            port = self._listen(socket.AF_INET, kind, ("127.0.0.1", 0)).getsockname()[1]
            self.environ[name] = str(port)
            with suppress(OSError):
                self._listen(socket.AF_INET6, kind, ("::1", port))
        self.environ["ABSTRACT"] = "escape"
        (self.outside / "pipes").mkdir()
        os.mkfifo(self.outside / "pipes/pipe")
        self._pipe = os.open(self.outside / "pipes/pipe", os.O_RDWR | os.O_NONBLOCK)
        threading.Thread(target=self._hear, daemon=True).start()

    def _listen(self, family: int, kind: int, address: str | tuple[str, int]) -> socket.socket:
        if isinstance(address, str) and not address.startswith("\0"):
            Path(address).parent.mkdir(parents=True, exist_ok=True)
        one = socket.socket(family, kind)
        one.bind(address)
        if kind == socket.SOCK_STREAM:
            one.listen()
        self._sockets[one.fileno()] = one
        return one

    def _listen_elsewhere(self, folder: Path) -> None:
        """Listen at names that the kernel does not list: a relative one, and a link."""
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "before"))
        (folder / "linked").hardlink_to(folder / "before")
        (folder / "before").unlink()
        before = Path.cwd()
        os.chdir(self.outside)
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, "relative.socket")
        os.chdir(before)

    def _hear(self) -> None:
        while True:
            for found in select.select([*self._sockets, self._pipe], [], [])[0]:
                if found == self._pipe:
                    self.heard += os.read(found, 999).split(b"\n")  # of several writers
                elif self._sockets[found].type == socket.SOCK_DGRAM:
                    self.heard.append(self._sockets[found].recv(999))
                else:
                    connection = self._sockets[found].accept()[0]
                    connection.settimeout(0.5)
                    with suppress(OSError):
                        self.heard.append(connection.recv(999) or b"a connection")
                    connection.close()

    def folder_of(self, case: Case) -> Path:
        """The folder that a case starts in."""
        if case.repo:
            return self.base / "repositories" / case.name
        return self.base / case.folder if case.folder else self.project / case.name

    def shown(self) -> bytes:
        """What arrived at the terminal."""
        shown = b""
        while select.select([self._leader], [], [], 0)[0]:
            shown += os.read(self._leader, 9999)
        return shown.replace(b"\r", b"")

    def close(self) -> None:
        """End the processes."""
        for victim in self.victims.values():
            victim.send_signal(signal.SIGKILL)
            victim.wait()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _share(text: str) -> None:
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    at = libc.shmat(libc.shmget(SHARED_KEY, 4096, 0o1600), None, 0)
    ctypes.memmove(at, text.encode(), len(text))
