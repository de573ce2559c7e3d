"""Types for what a tool call accesses, and for the gate's verdict on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol
from zlib import crc32

from msgspec import Struct


class ReadAccess(Struct, frozen=True):
    """Reads files.

    `paths` are absolute, resolved and inside the session's folders. `requested_names` are the names
    used in the request, which may be links to these paths.
    """

    paths: tuple[str, ...]
    requested_names: tuple[str, ...] = ()


class WriteAccess(Struct, frozen=True):
    """Creates or changes files.

    `paths` are absolute, resolved and inside the session's folders. `requested_names` are the names
    used in the request, which may be links to these paths. `user_named` is true if the user named
    every one of these files that steers agents. `deletes` is true if a file is removed or renamed.
    `output_folder` is the only folder that the skill in use edits, relative to the session's.
    """

    paths: tuple[str, ...]
    requested_names: tuple[str, ...] = ()
    user_named: bool = False
    deletes: bool = False
    output_folder: str | None = None


class CommandAccess(Struct, frozen=True):
    """Runs a shell command line in a folder.

    `roots` are the session's folders; all paths are resolved. Without `roots` only the working
    folder belongs to the project. The gate sets `only_reads` when it allows the command because it
    only reads. `confined` is true if the command runs in the sandbox, `outside` if it asks to run
    outside an available sandbox. `hosts` are the hosts that it asks to reach from the sandbox.
    `reversible` is true if the command is confined and checkpoints can undo its changes;
    `auto_allowed` is true if the configuration allows such commands without a question.
    `background` is true if the turn does not wait for its end.
    """

    command: str
    cwd: str
    roots: tuple[str, ...] = ()
    only_reads: bool = False
    confined: bool = False
    outside: bool = False
    hosts: tuple[str, ...] = ()
    reversible: bool = False
    auto_allowed: bool = False
    background: bool = False


class FetchAccess(Struct, frozen=True):
    """Sends a request to a URL; `search` is true for a request to a search service.

    `user_named` is true if the user named the host, or a search returned this exact URL. `changes`
    is true if the request may change something on the server; then `user_named` requires that the
    user named the host.
    """

    url: str
    search: bool = False
    user_named: bool = False
    changes: bool = False


class McpAccess(Struct, frozen=True, kw_only=True):
    """Calls a tool of an MCP server.

    `server` and `tool` are the names shown to the user. `identity` is a digest that identifies the
    server independently of its name; `definition` is a digest of the tool's definition at the time
    of the call. `read_only` is the server's claim that the tool changes nothing. `unnamed` are the
    URLs among the arguments whose host the user did not name and that no search returned.
    `is_agent` is true if the server is another program that works as an agent.
    """

    server: str
    tool: str
    identity: str
    definition: str
    read_only: bool = False
    unnamed: tuple[str, ...] = ()
    is_agent: bool = False


class NoteAccess(Struct, frozen=True):
    """Writes or deletes a note for later sessions, by its name.

    `everywhere` is true if sessions in all folders read the note.
    """

    name: str
    everywhere: bool = False


class NoAccess(Struct, frozen=True):
    """Touches nothing outside the session.

    `subject` and `name` are those of an agent or a skill that the call uses, for rules about them.
    """

    subject: Literal["", "agent", "skill"] = ""
    name: str = ""


Access = ReadAccess | WriteAccess | CommandAccess | FetchAccess | McpAccess | NoteAccess | NoAccess

Mode = Literal["ask", "accept-edits", "draft", "plan", "full"]


# The name of the sandbox grant in the journal: commands that are confined and can be undone.
CONFINED = "Bash in the sandbox"
CONFINED_LABEL = f"allow {CONFINED}"
CONFINED_WHY = "commands in the sandbox are allowed"

Tier = Literal["read_only", "standard", "destructive", "blocked"]


class Grant(Struct, frozen=True, kw_only=True):
    """A narrow rule that the user chose to remember, for one project folder.

    `kind` defines the meaning of `pattern`: the name of a command with the arguments bound to it
    (`command_grants.toml`), all words of a command, a folder below which files may be edited, a
    host that may be fetched from, or a tool of an MCP server (`tool_pattern`). For "confined" the
    pattern is empty: the grant covers commands in the sandbox that checkpoints can undo. `allow` is
    false for "never"; for a command, `pattern` then holds the leading words of the commands to
    refuse.
    """

    project: str
    kind: Literal["command", "exact_command", "edit", "fetch", "mcp", "confined"]
    pattern: str
    allow: bool = True

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that identify this grant, the same in every process."""
        key = "\0".join((self.project, self.kind, self.pattern))
        return f"{crc32(key.encode('utf-8', 'replace')):08x}"

    @property
    def text(self) -> str:
        """Return what the grant covers, as a policy rule if one could cover the same."""
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
        """Return the grant with its effect and id, for the journal."""
        return f"{'allow' if self.allow else 'deny'} {self.text} (answer {self.id})"


class Choice(Struct, frozen=True, kw_only=True):
    """A button of the question. `grants` are remembered when it is pressed."""

    id: str
    label: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]
    grants: tuple[Grant, ...] = ()


class Decision(Struct, frozen=True, kw_only=True):
    """The answer to a question; `choice` is None if the question was dismissed.

    `by` is who answered: the user, a command-line flag of the client (`name`), or nobody, if the
    client refused because there was nobody to ask.
    """

    choice: Choice | None = None
    by: Literal["user", "flag", "nobody"] = "user"
    name: str = ""


class Allow(Struct, frozen=True, kw_only=True):
    """The call may run without a question.

    `only_reads` is true for a command that only reads. `rule` is the policy rule or the remembered
    grant that decided, with its source; empty if neither did. `tier` is set for a command line.
    """

    by: Literal["mode", "grant", "rule"]
    why: str = ""
    only_reads: bool = False
    rule: str = ""
    tier: Tier | None = None


class Refuse(Struct, frozen=True, kw_only=True):
    """The call must not run; `why` is for the model and the user.

    `advice` is for the model only. `user_reason`, if set, replaces `why` for the user. `rule` is
    the policy rule or the remembered grant that decided, with its source; empty if neither did.
    `tier` is set for a command line.
    """

    by: Literal["mode", "grant", "rule"]
    why: str
    advice: str = ""
    user_reason: str = ""
    rule: str = ""
    tier: Tier | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """The user decides, with these buttons (allow_once first) and an optional `warning`.

    `tier` is set for a command line. `rule` is the policy rule that requires the question, with its
    source; empty if no rule does.
    """

    choices: tuple[Choice, ...]
    warning: str = ""
    tier: Tier | None = None
    rule: str = ""


Verdict = Allow | Refuse | Ask


class Gate(Protocol):
    """Decides whether a tool call runs, is refused or needs a question.

    `invisible_warning` is the warning about a change with hidden characters; `{places}` stands for
    their positions.
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

        `agent` is the name of the agent that makes the call; empty for the session's main agent.

        For a command this runs git to inspect repositories, so judge commands in a thread. Git is
        ended once `stopped` returns true.
        """

    def refused_reads(self, paths: Sequence[str], *, mode: Mode, project: str) -> Mapping[str, str]:
        """Return the files that rules hide from a search, with the reasons.

        Args:
            paths: the files, absolute and resolved.
            project: the session's working folder.
        """

    def remember(self, choice: Choice) -> None:
        """Save the grants of the button that the user pressed, in the user's data folder."""


def may_write(access: Access) -> bool:
    """Return whether a call writes or may write; an MCP server's claims are not trusted."""
    match access:
        case WriteAccess() | McpAccess():
            return True
        case CommandAccess():
            return not access.only_reads
        case _:
            return False
