"""The command line speaks the user's language, in columns that hold wide characters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acp_agent.cli.output import pad, width, wrap
from tests.cli.cli_process import acp_agent

CHINESE = {"LC_ALL": "zh_CN.UTF-8", "PYTHONUTF8": "1", "COLUMNS": "80"}


def test_every_command_is_explained_in_the_users_language_within_the_terminal(
    tmp_path: Path,
) -> None:
    explained = acp_agent(tmp_path, "--help", environ=CHINESE).stdout
    commands = re.findall(r"^acp-agent (\w+) ", explained, re.MULTILINE)
    assert "acp-agent doctor     检查设置" in explained
    assert len(commands) > 10
    for line in acp_agent(tmp_path, "serve", "--help", environ=CHINESE).stdout.splitlines():
        assert width(line) <= 80, line
    output = acp_agent(tmp_path, "run", "--help", environ=CHINESE).stdout
    assert output.startswith("用法：acp-agent run [-h]")
    assert "\n选项：\n  -h, --help            显示此帮助并退出\n" in output
    assert "默认在终端中询问您，在其他地方\n                        则拒绝" in output


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("locale", ["C.UTF-8", "zh_CN.UTF-8"])
def test_the_list_of_commands_fits_into_the_terminal(
    tmp_path: Path, columns: int, locale: str
) -> None:
    environ = {"LC_ALL": locale, "PYTHONUTF8": "1", "COLUMNS": str(columns)}
    lines = acp_agent(tmp_path, "--help", environ=environ).stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("acp-agent setup"))
    assert all(width(line) <= columns for line in lines[first:])
    assert any(line.startswith(" " * len("acp-agent completion ")) for line in lines[first:])


@pytest.mark.parametrize(
    "arguments",
    [
        ["sessions", "list", "--limit", "few"],
        ["sessions", "list", "--limit", "9" * 5_000],
        ["usage", "--days", "1.5"],
        ["chat", "--timeout", "long"],
        ["chat", "--timeout", "nan"],
        ["serve", "--listen", "127.0.0.1:0", "--idle-timeout", "short"],
        ["serve", "--listen", "127.0.0.1:0", "--max-sessions", "-1"],
    ],
)
def test_an_invalid_number_is_reported_with_the_expected_value(
    tmp_path: Path, arguments: list[str]
) -> None:
    ran = acp_agent(tmp_path, *arguments)
    assert ran.returncode == 2
    assert f"argument {arguments[-2]}: " in ran.stderr
    assert re.search("a number from 1 to [0-9,]+\n|seconds, such as 30\n", ran.stderr)


def test_usage_errors_and_failures_are_shown_in_the_language_of_the_user(tmp_path: Path) -> None:
    def error_output(*arguments: str) -> str:
        ran = acp_agent(tmp_path, *arguments, environ=CHINESE)
        assert ran.returncode != 0
        return ran.stderr.splitlines()[-1]

    assert error_output("nonsense") == "acp-agent: 未知命令 'nonsense'；请参阅 acp-agent --help"
    missing = "acp-agent mcp remove：错误：缺少必需的参数：name"
    assert error_output("mcp", "remove") == missing
    assert error_output("usage", "--days", "0") == (
        "acp-agent usage：错误：参数 --days：应为 1 到 3,660 之间的数字"
    )
    assert error_output("sessions", "show", "no-such").startswith("acp-agent: 还没有会话；")
    message = error_output("serve", "--listen", "here")
    assert message.startswith("acp-agent: --listen：应为 HOST:PORT，例如 ")
    assert message.endswith("；实为 'here'")


def test_the_configured_language_takes_precedence_over_the_locale(tmp_path: Path) -> None:
    config = tmp_path / "agent" / "config.toml"
    config.parent.mkdir()
    config.write_text('language = "en"\n')
    assert acp_agent(tmp_path, "sessions", "list", environ=CHINESE).stdout == (
        "There are no sessions yet; start one with `acp-agent chat` or in your editor.\n"
    )
    config.write_text('language = "zh"\n')
    assert acp_agent(tmp_path, "sessions", "list").stdout.startswith("还没有会话；")
    config.write_text("language = \n")  # what cannot be read is told by who needs it
    assert acp_agent(tmp_path, "sessions", "list", environ=CHINESE).stdout.startswith(
        "还没有会话；"
    )


def test_the_columns_of_a_table_are_aligned(tmp_path: Path) -> None:
    output = acp_agent(tmp_path, "models", "--all", environ=CHINESE).stdout
    lines = [line for line in output.splitlines() if line.strip()][:5]
    assert "模型" in lines[0]
    assert "输入 $" in lines[0]
    assert len({width(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("一二三四五六", ["一二三四", "五六"]),
        ("一二三四，五六", ["一二三", "四，五六"]),  # no comma begins a line
        ("一二三（四五）", ["一二三", "（四五）"]),  # and no bracket ends one
        ("用 --json 输出", ["用", "--json", "输出"]),
        ("averylongword", ["averylongword"]),
    ],
)
def test_a_text_is_wrapped_where_its_script_permits(text: str, lines: list[str]) -> None:
    assert wrap(text, 8) == lines
    assert pad("一", 4) == "一  "


def test_options_that_exclude_each_other_are_named_in_the_users_language(tmp_path: Path) -> None:
    messages = {
        "C.UTF-8": "argument --yes: not allowed with argument --list",
        "zh_CN.UTF-8": "参数 --yes：不能与参数 --list 一起使用",
    }
    for language, message in messages.items():
        done = acp_agent(tmp_path, "trust", "--list", "--yes", environ={"LANG": language})
        assert done.returncode == 2
        assert message in done.stderr
