"""What a tool call is about to touch: the question that every call puts to the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol
from zlib import crc32

from msgspec import Struct


class ReadAccess(Struct, frozen=True):
    """Reads files; absolute, resolved paths inside the session's folders.

    `asked` are the names that they were asked for by, which may be links to them.
    """

    paths: tuple[str, ...]
    asked: tuple[str, ...] = ()


class WriteAccess(Struct, frozen=True):
    """Creates or changes files; absolute, resolved paths inside the session's folders.

    `asked` are the names that they were asked for by, which may be links to them. `named` where the
    user named each of them that steers agents.
    """

    paths: tuple[str, ...]
    asked: tuple[str, ...] = ()
    named: bool = False


class CommandAccess(Struct, frozen=True):
    """Runs a shell command line in a folder; `roots` are the session's folders, all resolved.

    Without `roots` only the working folder counts as the project's. `only_reads` is set once the
    gate has let it run for that. `confined` where it runs in the sandbox; `hosts` are those that it
    wants to reach from there. `outside` where it is to run outside of the sandbox that there is.
    `reversible` where it is confined and checkpoints can undo what it does; `unasked` where the
    configuration lets such commands run without a question.
    """

    command: str
    cwd: str
    roots: tuple[str, ...] = ()
    only_reads: bool = False
    confined: bool = False
    outside: bool = False
    hosts: tuple[str, ...] = ()
    reversible: bool = False
    unasked: bool = False


class FetchAccess(Struct, frozen=True):
    """Sends a request to an address of the network; `search` where it is a search service's.

    `named` where the user named the host, or a search found this very address. `changes` where the
    request may change something there; then only the user's own words name its host.
    """

    url: str
    search: bool = False
    named: bool = False
    changes: bool = False


class McpAccess(Struct, frozen=True, kw_only=True):
    """Calls a tool of an MCP server.

    `server` and `tool` are what the user sees. `identity` says which server it is, whatever it is
    called, and `definition` what the tool was said to do when the call was made; both are digests.
    `read_only` is the server's own word for that the tool changes nothing. `unnamed` are the
    addresses among its arguments whose host the user did not name, and that no search found.
    """

    server: str
    tool: str
    identity: str
    definition: str
    read_only: bool = False
    unnamed: tuple[str, ...] = ()


class NoteAccess(Struct, frozen=True):
    """Writes or deletes a note for later sessions, by its name.

    `everywhere` where sessions in all folders read it.
    """

    name: str
    everywhere: bool = False


class NoAccess(Struct, frozen=True):
    """Touches nothing outside the session."""


Access = ReadAccess | WriteAccess | CommandAccess | FetchAccess | McpAccess | NoteAccess | NoAccess

Mode = Literal["ask", "accept-edits", "draft", "plan", "full"]


# How the journal names commands that ran since they were confined and could be undone.
CONFINED = "Bash in the sandbox"
CONFINED_LABEL = f"allow {CONFINED}"
CONFINED_WHY = "commands in the sandbox are allowed"

Tier = Literal["read_only", "standard", "destructive", "blocked"]


class Grant(Struct, frozen=True, kw_only=True):
    """A narrow rule that the user chose to remember, for one project folder.

    `kind` says what `pattern` is: a command's name with what is bound to it
    (`command_grants.toml`), all words of a command, a folder below which files may be edited, a
    host that may be fetched from, or a tool of an MCP server (`mcp_grants.py`). For "confined" it
    is empty: the grant covers the commands in the sandbox that checkpoints can undo. `allow` is
    false for "never"; then `pattern` is the leading words of the commands that are refused.
    """

    project: str
    kind: Literal["command", "exact_command", "edit", "fetch", "mcp", "confined"]
    pattern: str
    allow: bool = True

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that name this grant, the same in every process."""
        about = "\0".join((self.project, self.kind, self.pattern))
        return f"{crc32(about.encode('utf-8', 'replace')):08x}"

    @property
    def text(self) -> str:
        """What it covers, in the form of a rule of the policy where one would cover the same."""
        match self.kind:
            case "command" if self.allow:
                return self.pattern
            case "command":
                return f"Bash({self.pattern} *)"
            case "exact_command":
                return f"Bash({self.pattern})"
            case "edit":
                return f"Edit(/{self.pattern.rstrip('/')}/**)"
            case "fetch":
                return f"WebFetch(domain:{self.pattern})"
            case "confined":
                return CONFINED
            case "mcp":
                return "mcp__" + "__".join(self.pattern.split(" ")[:2])

    @property
    def label(self) -> str:
        """The grant with its effect and id, for the journal."""
        return f"{'allow' if self.allow else 'deny'} {self.text} (answer {self.id})"


class Choice(Struct, frozen=True, kw_only=True):
    """A button of the question. `grants` are remembered when it is pressed."""

    id: str
    label: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
    grants: tuple[Grant, ...] = ()


class Decision(Struct, frozen=True, kw_only=True):
    """What came of a question: the button that was pressed, None where it was dismissed.

    `by` says who pressed it: the user, a `flag` of the client's that is called `name`, or nobody,
    where the client refused because there was nobody to ask.
    """

    choice: Choice | None = None
    by: Literal["user", "flag", "nobody"] = "user"
    name: str = ""


class Allow(Struct, frozen=True, kw_only=True):
    """The call may run without a question; `only_reads` where it is a command that only reads.

    `rule` is the rule of the policy or the remembered answer that decided, with its place; empty
    where none did. `tier` is set for a command line.
    """

    by: Literal["mode", "grant", "rule"]
    why: str = ""
    only_reads: bool = False
    rule: str = ""
    tier: Tier | None = None


class Refuse(Struct, frozen=True, kw_only=True):
    """The call must not run; `why` is for the model and the user.

    `advice` is for the model alone, and `shown` for the user in the place of `why`. `rule` is the
    rule of the policy or the remembered answer that decided, with its place; empty where none did.
    `tier` is set for a command line.
    """

    by: Literal["mode", "grant", "rule"]
    why: str
    advice: str = ""
    shown: str = ""
    rule: str = ""
    tier: Tier | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """The user decides: the buttons, allow_once first, and a `warning` where one is due.

    `tier` is set for a command line. `rule` is the rule of the policy that wants the question, with
    its place; empty where none does.
    """

    choices: tuple[Choice, ...]
    warning: str = ""
    tier: Tier | None = None
    rule: str = ""


Verdict = Allow | Refuse | Ask


class Gate(Protocol):
    """Decides what may happen.

    `invisible_warning` is the text about `{places}` of a change that has hidden characters.
    """

    invisible_warning: str

    def judge(
        self,
        access: Access,
        *,
        mode: Mode,
        project: str,
        agent: str = "",
        stopped: Callable[[], bool] = lambda: False,
    ) -> Verdict:
        """Judge a call of a session in `mode` whose working folder is `project`.

        `agent` is the name of the agent that makes the call, empty for the session's own.

        Git is asked about the repositories of a command: judge commands in a thread. It is ended
        once `stopped` says that nobody waits for the verdict any more.
        """
        ...

    def refused_reads(self, paths: Sequence[str], *, mode: Mode, project: str) -> Mapping[str, str]:
        """Return which files a search must not show, by rules, with the reasons.

        Args:
            paths: the files, absolute and resolved.
            mode: the session's mode.
            project: its working folder.
        """
        ...

    def remember(self, choice: Choice) -> None:
        """Keep the grants of the button that the user pressed, in the user's data folder."""
        ...


def may_write(access: Access) -> bool:
    """True where it writes, and where nobody knows; what an MCP server says is no proof."""
    match access:
        case WriteAccess() | McpAccess():
            return True
        case CommandAccess():
            return not access.only_reads
        case _:
            return False
