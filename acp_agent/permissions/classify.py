"""Classify a shell command line by its most dangerous command."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import gettempdir

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.access import Tier
from acp_agent.permissions.choices import Language, translate_reason
from acp_agent.permissions.command_scope import names_inner_command
from acp_agent.permissions.destructive_commands import option_reason, rule_reason, subcommand_reason
from acp_agent.permissions.git_reads import at_top_level
from acp_agent.permissions.inner_texts import (
    command_values,
    destructive_text_reason,
    output_paths_in_texts,
    program_texts,
    variable_reason,
)
from acp_agent.permissions.paths import CommandContext, is_below, stays_inside
from acp_agent.permissions.printed_names import printed_names
from acp_agent.permissions.read_only import (
    is_installed,
    is_read_only,
    resolve_word,
    sets_own_variables,
)
from acp_agent.permissions.refused_commands import (
    discards_changes,
    expand_tar_letters,
    is_fork_bomb,
    output_paths,
    refusal_reason,
)
from acp_agent.permissions.rules import operands, read_only_rules, shell_rules
from acp_agent.permissions.shell.parser import parse_line
from acp_agent.permissions.shell.syntax import Command, ShellLine
from acp_agent.permissions.shell.words import NONEMPTY, UNKNOWN, Word
from acp_agent.permissions.wrapped_commands import (
    InnerCommand,
    base_name,
    inner_commands,
    without_actions,
)
from acp_agent.permissions.written_files import WrittenFiles

_ORDER: tuple[Tier, ...] = ("read_only", "standard", "destructive", "blocked")
_NESTING_LIMIT = 12  # levels of nested shells
_FOLDER_LIMIT = 8  # folders that a line may have changed to
_DISPLAY_LIMIT = 120  # characters of a command in a reason
_INSERTERS = frozenset({"find", "gfind", "fd", "fdfind", "xargs", "parallel"})
_REPEATED_MARKS = re.compile("…(?: …)+")  # for names that are known only when it runs
_DISPLAY_TRANSLATION = {ord(UNKNOWN): "…", ord(NONEMPTY): "…"}


class Finding(Struct, frozen=True, kw_only=True):
    """A command of the line with its tier and the reason for it.

    `words` are the command's words as far as they are known; `parsed` is the command itself. `leaf`
    is the command if it runs no other command, or only one that its first words name; only then can
    an "always" be offered for it. `folders` are the folders that it may run in. `within` is true
    for the commands that such a leaf runs.
    """

    tier: Tier
    command: str
    reason: str
    words: tuple[str, ...] = ()
    parsed: Command | None = None
    leaf: Command | None = None
    folders: tuple[str, ...] = ()
    within: bool = False


class Classified(Struct, frozen=True, kw_only=True):
    """A line's tier, the reason from the finding that decided it, and all findings.

    `plain` is true if the line does exactly what its commands do.
    """

    tier: Tier
    reason: str
    findings: tuple[Finding, ...]
    plain: bool

    def translate_reason(self, language: Language) -> str:
        """Return the reason in the user's language."""
        deciding = _deciding_finding(self.findings, self.tier)
        if deciding is None:
            return self.reason
        return f"`{deciding.command}` {translate_reason(language, deciding.reason)}"


def worst_tier(tiers: Sequence[Tier]) -> Tier:
    """Return the most dangerous of the tiers, or read_only if there are none."""
    return max(tiers, key=_ORDER.index, default="read_only")


def classify(command: str, context: CommandContext) -> Classified:
    """Classify a command line that a shell would run in `context`. Never raises."""
    classifier = _Classifier(context)
    classifier.line(command)
    findings = classifier.findings
    if not classifier.followed:
        findings = [_raise_tier(finding, "standard") for finding in findings]
    tier = worst_tier([finding.tier for finding in findings])
    deciding = _deciding_finding(findings, tier)
    return Classified(
        tier=tier,
        reason=f"`{deciding.command}` {deciding.reason}" if deciding else "does nothing",
        findings=tuple(findings),
        plain=classifier.plain,
    )


def _deciding_finding(findings: Sequence[Finding], tier: Tier) -> Finding | None:
    return next((finding for finding in findings if finding.tier == tier), None)


def _raise_tier(finding: Finding, tier: Tier) -> Finding:
    if finding.tier != "read_only":
        return finding
    return replace(finding, tier=tier, reason="runs among things that are not certain beforehand")


class _Classifier:
    """Collects the findings of one line and of the lines inside it."""

    def __init__(self, context: CommandContext) -> None:
        self.context = context
        self.folders = [context.cwd]
        self.findings: list[Finding] = []
        self.plain = True
        self.followed = True
        self.written_files = WrittenFiles(context.cwd)
        self.inserting = False  # inside a command that replaces {} with file names
        self.guessing = False  # while interpreting words in a way that is only a guess

    def line(self, text: str) -> None:
        """Classify the whole line."""
        if UNKNOWN in text or NONEMPTY in text or not _is_encodable(text):
            self.plain = self.followed = False
            self._add("blocked", text, "has control characters that no command needs")
        else:
            self.text(text, 0)

    def text(
        self, text: str, depth: int, *, stdin: Word | None = None, piped: bool = False
    ) -> None:
        """Classify a text that a shell runs, `depth` shells down, with its inherited input."""
        line = parse_line(
            text,
            cwd=self.context.cwd,
            home=self.context.home,
            stdin=stdin,
            piped=piped,
            public=read_only_rules().public_variables,
            listed=printed_names,
        )
        self.plain = self.plain and line.plain
        self.followed = self.followed and line.followed
        if line.problem or depth > _NESTING_LIMIT:
            self._add("blocked", text, line.problem or "is nested too deeply to be checked")
            return
        if is_fork_bomb(line.commands, line.functions):
            self._add("blocked", text, "starts itself again and again without end")
        if line.unparsed:
            self._add("standard", text, "is not a valid command line")
        elif not line.followed and not line.commands:
            self._add("standard", text, "evaluates what is only known when it runs")
        for command in line.commands:
            self._classify_command(command, line, depth)

    def _add(
        self, tier: Tier, command: Command | str, reason: str, leaf: Command | None = None
    ) -> None:
        display = " ".join(str(command).translate(_DISPLAY_TRANSLATION).split())
        display = _REPEATED_MARKS.sub("…", display)
        if len(display) > _DISPLAY_LIMIT:
            display = display[: _DISPLAY_LIMIT - 1] + "…"
        words = () if isinstance(command, str) else tuple(word.text for word in command.words)
        self.findings.append(
            Finding(
                tier=tier,
                command=display,
                reason=reason,
                words=words,
                parsed=None if isinstance(command, str) else command,
                leaf=leaf,
                folders=tuple(self.folders),
            )
        )

    def _classify_command(self, command: Command, line: ShellLine, depth: int) -> None:
        if depth > _NESTING_LIMIT:
            self._add("blocked", command, "is nested too deeply to be checked")
            return
        command = at_top_level(command, self.context, self.folders)
        refusal = refusal_reason(command, self.context, self.folders)
        if refusal:
            self._add("blocked", command, refusal)
            return
        self._add_texts(command, depth + 1)
        readings = [*inner_commands(command), *self.written_files.run_by(command)]
        self.written_files.note(command)
        inner = [reading for reading in readings if not reading.guess]
        names_inner = bool(inner) and names_inner_command(command)
        start = len(self.findings)
        inserting = self.inserting
        self.inserting = inserting or base_name(command) in _INSERTERS
        for reading in inner:
            self._classify_inner(command, reading, line, depth + 1)
        for reading in readings:
            if reading.guess and not self.guessing:
                self._add_guess(command, reading, line, depth + 1)
        self.inserting = inserting
        if names_inner:
            self.findings[start:] = [
                replace(finding, within=True) for finding in self.findings[start:]
            ]
        if any(reading.transparent for reading in inner) and is_installed(
            command.words[0], self.context, self.folders
        ):
            return
        if depth == 0 and line.ends_in_folder(command):
            self._add("read_only", command, "runs nothing in the other folder", command)
            return
        stripped = without_actions(command)
        tier, reason = self._direct_tier(stripped, line)
        if inner and tier == "read_only" and stripped is command:
            tier, reason = "standard", "runs another command"
        self._add(tier, command, reason, None if inner and not names_inner else command)
        if base_name(command) in {"cd", "pushd", "popd", "chdir"}:
            self._change_folder(command)

    def _classify_inner(
        self, outer: Command, inner: InnerCommand, line: ShellLine, depth: int
    ) -> None:
        if inner.why:
            self._add(inner.tier, outer, inner.why)
        if inner.command is not None:
            folders = list(self.folders)
            self._add_folders(*inner.folders)
            self._classify_command(inner.command, line, depth)
            if inner.folders:  # without folders it may be the shell's own builtin: `command cd x`
                self.folders = folders
        if inner.text is None:
            return
        if not inner.text.static and inner.strict:
            self._add("blocked", outer, "runs a text that is not known before it runs")
        elif not inner.text.static:
            self._add("destructive", outer, "runs a text that is not known before it runs")
        elif self.inserting and "{}" in inner.text.text:
            self._add("destructive", outer, "runs names of files as commands")
        if inner.text is outer.stdin:
            self.text(inner.text.text, depth)
        else:
            self.text(inner.text.text, depth, stdin=outer.stdin, piped=outer.piped)

    def _add_texts(self, command: Command, depth: int) -> None:
        """Add the destructive commands among the texts that the command may run."""
        texts = command_values(command)
        if texts and is_read_only(command, self.context, self.folders):
            texts = []
        for text in [*texts, *program_texts(command)]:
            nested = self._nested_classifier()
            nested.text(text, depth)
            self._add_nested(nested, {"destructive", "blocked"})

    def _add_guess(self, outer: Command, inner: InnerCommand, line: ShellLine, depth: int) -> None:
        """Add the refused commands that result if the words of `outer` are read this way."""
        nested = self._nested_classifier()
        nested.guessing = True
        nested._classify_inner(outer, inner, line, depth)  # noqa: SLF001 - its own class
        self._add_nested(nested, {"blocked"})

    def _nested_classifier(self) -> _Classifier:
        nested = _Classifier(self.context)
        nested.folders = list(self.folders)
        nested.guessing = self.guessing
        nested.written_files = self.written_files
        return nested

    def _add_nested(self, nested: _Classifier, tiers: Collection[Tier]) -> None:
        self.findings += [
            finding for finding in nested.findings if finding.tier in tiers and finding.words
        ]

    def _direct_tier(self, command: Command, line: ShellLine) -> tuple[Tier, str]:
        """Return the tier and the reason for what a command does itself."""
        overwrites = "overwrites data" if self._truncates_file(command) else ""
        outside = self._writes_outside(command) or overwrites
        dangerous = outside or variable_reason(command.assignments)
        if dangerous:
            return "destructive", dangerous
        if not command.words:
            if any(redirect.writes for redirect in command.redirects):
                return "standard", "writes a file"
            if sets_own_variables(command, self.context, self.folders):
                return "read_only", "sets variables of the line"
            return "standard", "sets variables"
        name = base_name(command)
        is_listed = bool(command.words[0].origin) and "…" in name
        is_unknown = UNKNOWN in name or NONEMPTY in name or is_listed
        if is_unknown or command.words[0].pattern:
            return "destructive", "runs a program that is only known when it runs"
        texts = [word.text for word in expand_tar_letters(name, command.words[1:])]
        discards = name == "git" and discards_changes(texts, self.folders)
        why = (
            rule_reason(name, texts)
            or ("throws uncommitted changes away" if discards else destructive_text_reason(command))
            or option_reason(command, name)
        )
        if why:
            return "destructive", why
        if name not in line.functions and is_read_only(command, self.context, self.folders):
            return "read_only", "only reads"
        why = subcommand_reason(command, name)
        return ("destructive", why) if why else ("standard", "may change something")

    def _truncates_file(self, command: Command) -> bool:
        """Return whether a file with content is replaced by an empty one."""
        texts = [word.text for word in command.words]
        targets = [r.target.text for r in command.redirects if r.operator in {">", ">|", "&>"}]
        if texts[:2] == ["cp", "/dev/null"]:
            targets = texts[2:]
        elif texts and texts[0] not in {":", "true"} and texts != ["cat", "/dev/null"]:
            return False
        paths = [os.path.join(folder, text) for folder in self.folders for text in targets]  # noqa: PTH118 - text that need not be a path
        return any(os.path.isfile(path) and os.path.getsize(path) for path in paths)  # noqa: PTH202 - likewise

    def _writes_outside(self, command: Command) -> str:
        targets = [r.target for r in command.redirects if r.writes and not r.target.text.isdigit()]
        if command.words:
            targets += output_paths(base_name(command), command.words[1:])
            targets += map(Word, output_paths_in_texts(command))
        for target in targets:
            if target.text != "-" and not self._may_write(target):
                return f"writes to {target.text}, outside the project's folders"
        return ""

    def _may_write(self, target: Word) -> bool:
        writers = shell_rules().writers
        if target.text in writers.harmless or UNKNOWN in target.text or NONEMPTY in target.text:
            return True  # unknown parts lead to a question anyway
        path_word = Word(target.text)
        if stays_inside(path_word, self.context, self.folders):
            return True
        path = os.path.realpath(Path(self.context.cwd) / target.text)
        scratch = [os.path.realpath(folder) for folder in (*writers.scratch, gettempdir())]
        return is_below(path, scratch) and not is_below(path, [self.context.home])

    def _change_folder(self, command: Command) -> None:
        words = [resolve_word(word, self.context, self.folders) for word in command.words[1:]]
        if any(word.pattern for word in words):
            # A match may be a link to anywhere in the project.
            self.plain = self.followed = False
        targets = operands([word.text for word in words], ())
        target = targets[0] if targets else self.context.home
        if UNKNOWN in target or target == "-" or base_name(command) != "cd":
            self.plain = self.followed = False
        self._add_folders(target)

    def _add_folders(self, *targets: str) -> None:
        """Record that later commands may run in one of `targets`, too."""
        new_folders = [
            os.path.normpath(Path(folder) / target.replace(UNKNOWN, "?"))
            for folder in self.folders
            for target in targets
        ]
        self.folders = list(dict.fromkeys([*self.folders, *new_folders]))
        if len(self.folders) > _FOLDER_LIMIT:
            self.plain = self.followed = False
            # The latest is the most likely.
            del self.folders[_FOLDER_LIMIT // 2 : -_FOLDER_LIMIT // 2]


def _is_encodable(text: str) -> bool:
    """Return whether a text can be passed as a program argument; a lone surrogate cannot."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True
