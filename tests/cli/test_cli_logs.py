"""Logging of a process that serves an editor."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from acp_agent.cli.log_file import open_log_file
from tests.cli.cli_process import environment

KEY = "a-key-of-no-known-form-0123456789"


def run_logging(home: Path, code: str, **config: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh process whose logging was set up for the files below `home`."""
    program = f"""
import logging, sys
from pathlib import Path
from acp_agent.cli import logs
from acp_agent.cli.logs import set_up_logging
from acp_agent.config.paths import find_paths
from acp_agent.config.types import Config, LogConfig
paths = find_paths({{"ACP_AGENT_HOME": {str(home)!r}}})
config = Config(log=LogConfig(level={config.get("level", "info")!r}))
logs.CLOSE_SECONDS = 60.0  # a busy machine
set_up_logging(paths, config, lambda: [{KEY!r}])
log = logging.getLogger("acp_agent.test")
{code}
"""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def log_lines(home: Path) -> list[str]:
    return (home / "logs" / "agent.log").read_text(encoding="utf-8").splitlines()


def test_records_go_to_the_file_and_warnings_to_stderr_and_nothing_to_stdout(
    tmp_path: Path,
) -> None:
    ran = run_logging(
        tmp_path, "log.debug('low'); log.info('middle'); log.warning('high %s', 7)\nprint(end='')"
    )
    assert [line.split(" ", 3)[2:] for line in log_lines(tmp_path)] == [
        ["INFO", "acp_agent.test: middle"],
        ["WARNING", "acp_agent.test: high 7"],
    ]
    assert ran.stderr == "acp-agent: warning: high 7\n"
    assert ran.stdout == ""


def test_the_last_record_is_in_the_file_when_the_program_ends(tmp_path: Path) -> None:
    for attempt in range(10):  # the end of the program and the log's thread run against each other
        home = tmp_path / str(attempt)
        run_logging(home, "log.warning('the last words')")
        assert [line.rpartition(": ")[2] for line in log_lines(home)] == ["the last words"]


def test_the_configured_level_is_for_our_own_records_only(tmp_path: Path) -> None:
    run_logging(
        tmp_path,
        "log.debug('ours'); logging.getLogger('openai').debug('the whole request')",
        level="debug",
    )
    assert len(log_lines(tmp_path)) == 1
    assert log_lines(tmp_path)[0].endswith("ours")


@pytest.mark.parametrize(("level", "is_logged"), [("debug", True), ("info", False)])
def test_the_debug_log_says_how_the_agent_was_started(
    tmp_path: Path, level: str, is_logged: bool
) -> None:
    environ = environment(
        tmp_path, {"ACP_AGENT_LOG_LEVEL": level, "ACP_AGENT_MODEL": f"openai/{KEY}"}
    )
    command = [sys.executable, "-m", "acp_agent", "--model", "demo/demo", "--acp"]
    subprocess.run(
        command, input=b"not JSON\n", capture_output=True, timeout=60, check=True, env=environ
    )
    lines = log_lines(tmp_path / "agent")
    started = [line for line in lines if "started: acp-agent " in line]
    assert len(started) == is_logged
    for line in started:
        assert f"configuration {tmp_path / 'agent' / 'config.toml'}, " in line
        assert "--model demo/demo; variables set: ACP_AGENT_HOME, ACP_AGENT_LOG_LEVEL, " in line
    assert KEY not in "".join(lines)


def test_the_file_and_its_folder_are_accessible_only_by_their_owner(tmp_path: Path) -> None:
    os.umask(previous := os.umask(0))
    run_logging(tmp_path, "import os; os.umask(0); log.info('x')")
    os.umask(previous)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("logs", "logs/agent.log")]
    assert modes == [0o700, 0o600]


def test_secrets_are_in_neither_place_not_even_in_a_traceback(tmp_path: Path) -> None:
    code = f"""
try:
    raise ValueError("refused: {KEY}")
except ValueError:
    log.exception("failed with {KEY} and sk-ant-api03-%s", "A" * 95)
"""
    ran = run_logging(tmp_path, code)
    log_text = "\n".join(log_lines(tmp_path))
    for text in (log_text, ran.stderr):
        assert KEY not in text
        assert "AAAAAAAA" not in text
        assert "[secret]" in text
    assert "ValueError: refused: [secret]" in log_text
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_logged_text_cannot_forge_a_line_or_control_a_terminal(tmp_path: Path) -> None:
    ran = run_logging(tmp_path, r"log.warning('a\nb\r\x1b[2Jc')")
    assert log_lines(tmp_path)[0].endswith(r"a\nb\r\x1b[2Jc")
    assert ran.stderr == "acp-agent: warning: a\\nb\\r\\x1b[2Jc\n"


def test_a_log_that_cannot_be_written_is_reported_once_and_harmless(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    ran = run_logging(
        tmp_path,
        "for n in range(3):\n    log.info('x')\n    logging.getLogger().handlers[0].flush()",
    )
    assert ran.returncode == 0
    assert ran.stderr.count("cannot write the log") == 1
    assert ran.stderr.count("\n") == 1


def test_an_unread_stderr_does_not_stop_the_program(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    program = f"""
import logging
from acp_agent.cli.logs import set_up_logging
from acp_agent.config.paths import find_paths
from acp_agent.config.types import Config
set_up_logging(find_paths({{"ACP_AGENT_HOME": {str(tmp_path)!r}}}), Config(), list)
for n in range(5_000):
    logging.getLogger("acp_agent").warning("%d %s", n, "x" * 100)
print("went on")
"""
    try:
        ran = subprocess.run(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE, stderr=writer, text=True, timeout=60, check=True,
        )  # fmt: skip
    finally:
        os.close(reader)
        os.close(writer)
    assert ran.stdout == "went on\n"
    assert log_lines(tmp_path)[-1].endswith("x" * 100)


def test_a_message_that_cannot_be_formatted_is_skipped_and_the_next_is_logged(
    tmp_path: Path,
) -> None:
    ran = run_logging(tmp_path, "log.warning('%d', 'no number'); log.warning('fine')")
    assert ran.returncode == 0
    assert [line.rpartition(": ")[2] for line in log_lines(tmp_path)] == ["fine"]
    assert ran.stderr == "acp-agent: warning: fine\n"


def test_warnings_of_python_become_records(tmp_path: Path) -> None:
    ran = run_logging(tmp_path, "import warnings; warnings.warn('old thing', UserWarning)")
    assert "old thing" in log_lines(tmp_path)[0]
    assert ran.stderr.startswith("acp-agent: warning: ")
    assert ran.stderr.count("\n") == 1


def test_the_start_imports_neither_file_rotation_nor_scrubbing(tmp_path: Path) -> None:
    ran = run_logging(
        tmp_path,
        "print('logging.handlers' in sys.modules, 'acp_agent.workspace.scrub' in sys.modules)",
    )
    assert ran.stdout.split() == ["False", "False"]


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("acp_agent", logging.INFO, __file__, 1, text, None, None)


def test_the_log_is_bounded_and_the_newest_records_remain(tmp_path: Path) -> None:
    file = open_log_file(tmp_path / "agent.log", 1_000, 2)
    for number in range(200):
        file.emit(record(f"record {number:03}" + "." * 40))
    file.finish()
    names = sorted(entry.name for entry in tmp_path.iterdir())
    assert names == ["agent.log", "agent.log.1", "agent.log.2"]
    assert all((tmp_path / name).stat().st_size <= 1_000 for name in names)
    assert "record 199" in (tmp_path / "agent.log").read_text()


def test_a_process_writes_to_the_new_file_after_another_rotated_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    first_log = open_log_file(path, 100_000, 2)
    first_log.emit(record("before"))
    path.rename(tmp_path / "agent.log.1")  # as another process does when the file is full
    first_log.emit(record("after"))
    first_log.finish()
    assert (tmp_path / "agent.log.1").read_text() == "before\n"
    assert path.read_text() == "after\n"


@pytest.mark.parametrize("text", ["\ud800 lone", "é 漢字 🎉"])
def test_any_text_can_be_logged(tmp_path: Path, text: str) -> None:
    ran = run_logging(tmp_path, f"log.info({text!a})")
    assert ran.returncode == 0
    assert len(log_lines(tmp_path)) == 1
    assert log_lines(tmp_path)[0].endswith(text.encode("utf-8", "backslashreplace").decode())
