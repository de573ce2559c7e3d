"""A program that connects a confined command to the filtering proxy, then executes the command.

    python -I -S relay.py SOCKET PORT [LOCAL_PORT ...] -- COMMAND [ARGUMENT ...]

The command's network namespace has no route out, but a unix socket is reachable through the file
system. A background process listens on 127.0.0.1:PORT and relays each connection to SOCKET. It
relays connections to a LOCAL_PORT through the proxy to the same port of `localhost` outside. It
exits with the command.

It delays the start of the command, so it imports neither this package nor modules that are slow to
load: `socket` and `signal` would double its time.
"""

import _signal  # type: ignore[import-not-found] # `signal` without its enumerations; has no stub
import _socket
import errno
import os
import select
import sys

BUFFER = 65_536  # bytes buffered for each direction of a connection
MAX_CONNECTIONS = 256  # at the same time; further ones wait
_CONNECT_LIMIT = 15.0  # seconds for the proxy to respond; it gives up on a host after ten
_BACKLOG = 128
_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)


class Direction:
    """One direction of a connection: bytes from one socket to another."""

    def __init__(self, source: _socket.socket, target: _socket.socket, buffer: bytes = b"") -> None:
        self.source = source
        self.target = target
        self.buffer = buffer  # read but not yet sent
        self.ended = False  # the source has reached its end

    def poll_target(self) -> tuple[int, int]:
        """Return the descriptor to poll next and its event mask, which is 0 after the end."""
        if self.buffer:
            return self.target.fileno(), select.POLLOUT
        return self.source.fileno(), 0 if self.ended else select.POLLIN

    def move(self) -> None:
        """Send buffered bytes, or read and send new ones. Raises OSError if a socket fails."""
        if not self.buffer and not self.ended:
            self.buffer = self.source.recv(BUFFER)
            if not self.buffer:
                self.ended = True
                self.target.shutdown(_socket.SHUT_WR)
                return
        try:
            self.buffer = self.buffer[self.target.send(self.buffer) :]
        except BlockingIOError:
            return


class Relay:
    """All connections between the listening sockets and the proxy."""

    def __init__(self, path: str, listeners: dict[int, _socket.socket], command: int) -> None:
        """Create a relay that does not serve yet.

        Args:
            path: the proxy's unix socket.
            listeners: listening sockets by the port of `localhost` outside; 0 for the proxy itself.
            command: a descriptor that becomes readable when the command ends, or -1.
        """
        self._path = path
        self._ports = {listener.fileno(): port for port, listener in listeners.items()}
        self._listeners = listeners
        self._command = command
        self._limit = MAX_CONNECTIONS
        self._opposites: dict[Direction, Direction] = {}  # both directions of each connection

    def serve(self) -> None:
        """Relay until the command has ended."""
        while True:
            directions, masks = self._poll_state()
            poll = select.poll()
            for descriptor, mask in masks.items():
                poll.register(descriptor, mask)
            for descriptor, ready in poll.poll():
                if descriptor == self._command:
                    return
                if descriptor in self._ports:
                    self._accept(self._ports[descriptor])
                for direction, mask in directions.get(descriptor, ()):
                    if ready & (mask | select.POLLHUP | select.POLLERR):
                        self._move(direction)

    def _poll_state(self) -> tuple[dict[int, list[tuple[Direction, int]]], dict[int, int]]:
        """Return the directions that wait for each descriptor, and the event masks to poll."""
        directions: dict[int, list[tuple[Direction, int]]] = {}
        masks: dict[int, int] = {}
        for direction in self._opposites:
            descriptor, mask = direction.poll_target()
            if mask:
                directions.setdefault(descriptor, []).append((direction, mask))
                masks[descriptor] = masks.get(descriptor, 0) | mask
        if len(self._opposites) < 2 * self._limit:
            masks.update(dict.fromkeys(self._ports, select.POLLIN))
        if self._command >= 0:
            masks[self._command] = select.POLLIN
        return directions, masks

    def _move(self, direction: Direction) -> None:
        opposite = self._opposites.get(direction)
        if opposite is None:
            return  # closed since it was polled
        try:
            direction.move()
        except BlockingIOError:
            return
        except OSError:
            is_finished = True
        else:
            is_finished = (
                direction.ended and opposite.ended and not direction.buffer + opposite.buffer
            )
        if is_finished:
            del self._opposites[direction], self._opposites[opposite]
            direction.source.close()
            direction.target.close()

    def _accept(self, port: int) -> None:
        try:
            # As `socket.socket.accept` does; it has no stub either.
            descriptor, _ = self._listeners[port]._accept()  # type: ignore[attr-defined] # noqa: SLF001
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                self._limit = max(1, len(self._opposites) // 2)
            return
        client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, descriptor)
        try:
            proxy, buffer = _connect(self._path, port)
        except OSError:
            client.close()
            return
        for end in (client, proxy):
            end.setblocking(False)
        outgoing, incoming = Direction(client, proxy), Direction(proxy, client, buffer)
        self._opposites |= {outgoing: incoming, incoming: outgoing}


def _connect(path: str, port: int) -> tuple[_socket.socket, bytes]:
    """Connect to the proxy and, unless `port` is 0, through it to that port of `localhost` outside.

    Return the socket and the bytes already received.
    """
    proxy = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        proxy.settimeout(_CONNECT_LIMIT)
        proxy.connect(path)
        if not port:
            return proxy, b""
        proxy.sendall(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (port, port))
        head = b""
        while b"\r\n\r\n" not in head:
            read = proxy.recv(BUFFER)
            if not read or len(head) > BUFFER:
                raise ConnectionAbortedError
            head += read
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ConnectionRefusedError
        return proxy, head.partition(b"\r\n\r\n")[2]
    except OSError:
        proxy.close()
        raise


def _listen(port: int) -> _socket.socket:
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


def _relay_in_background(path: str, listeners: dict[int, _socket.socket]) -> None:
    """Start the relay as a detached process, so that it is not a child of the command."""
    try:
        command = os.pidfd_open(os.getpid())
    except OSError:
        command = -1  # an old kernel: the relay ends with the process namespace
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    next_descriptor = 3
    for inherited in sorted({command, *(listener.fileno() for listener in listeners.values())}):
        if inherited > 2:
            os.closerange(next_descriptor, inherited)
            next_descriptor = inherited + 1
    os.closerange(next_descriptor, os.sysconf("SC_OPEN_MAX"))
    try:
        Relay(path, listeners, command).serve()
    finally:
        os._exit(0)


def _environment() -> dict[bytes, bytes]:
    """Return the original environment; Python adds LC_CTYPE if there is no locale (PEP 538)."""
    try:
        descriptor = os.open("/proc/self/environ", os.O_RDONLY)
    except OSError:
        return dict(os.environb)
    with os.fdopen(descriptor, "rb") as file:
        pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if entry)
        return {name: value for name, _, value in pairs}


def main(arguments: list[str]) -> int:
    """Start the relay and execute the command; return an exit status if one cannot be started."""
    separator = arguments.index("--")
    path, port, *local_ports = arguments[:separator]
    command = arguments[separator + 1 :]
    try:
        listeners = {0: _listen(int(port))}
        listeners |= {int(local): _listen(int(local)) for local in local_ports}
    except OSError as error:
        sys.stderr.write(f"acp-agent: no way to the network in the sandbox: {error}\n")
        return 125
    _relay_in_background(path, listeners)
    for signal in _IGNORED_BY_PYTHON:
        _signal.signal(signal, _signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, _environment())  # noqa: S606 - the command has been checked
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {os.strerror(error.errno or 0)}\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
