"""Texts that are English in the journal and in exceptions are said in the user's language."""

from __future__ import annotations

import re
import string
from typing import Literal

import pytest

from acp_agent.config.localization import ENGLISH, read_templates, translator_for
from acp_agent.config.message_templates import Templates
from tests.config.source_texts import button_templates, every_template, told, wordless

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# What argparse says is shown as ours.
ARGPARSE = re.compile("argument |unrecognized arguments|the following arguments|ambiguous option")


def filled(template: str) -> str:
    """A text of a template: its values are numbers that nothing else has."""
    values = iter(range(701, 800))
    return re.sub(r"\{\}", lambda _: str(next(values)), template)


def test_every_text_that_is_shown_has_a_translation_with_its_values() -> None:
    translate = translator_for("zh")
    missing = set()
    for module, template in told():
        text = filled(template)
        translated = (
            translate.rendered_title if module.startswith("tools/") else translate.rendered
        )(text)
        if not CHINESE.search(translated):
            missing.add((module, template))
        else:
            assert sorted(re.findall("7[0-9]{2}", translated)) == sorted(
                re.findall("7[0-9]{2}", text)
            )
    assert missing == set()


def test_the_buttons_of_a_question_are_translated_with_their_subject() -> None:
    say = translator_for("zh").rendered
    for template in button_templates():
        text = template.replace("{}", "`a`")
        assert CHINESE.search(say(text)), text
        assert say(text).count("`a`") == text.count("`a`")
    two = "Never allow `git add` and `git commit` commands in this project"
    assert say(two) == "在此项目中始终拒绝 `git add`和`git commit` 命令"
    exact = "Always allow `make test` and exactly `./x y` in this project"
    assert say(exact) == "在此项目中始终允许 `make test` 以及完整命令 `./x y`"
    assert say("Always allow exactly `./x y` in this project") == (
        "在此项目中始终允许完整命令 `./x y`"
    )


@pytest.mark.parametrize("table", ["titles", "texts", "parts"])
def test_a_translated_template_has_each_value_once(
    table: Literal["titles", "texts", "parts"],
) -> None:
    for template, translation in read_templates("zh")[table].items():
        fields = [
            name for _, name, _, _ in string.Formatter().parse(translation) if name is not None
        ]
        if any(fields):
            assert sorted(map(int, fields)) == list(range(template.count("{}"))), template
        else:
            assert len(fields) == template.count("{}"), template


def _own(template: str) -> str:
    """A template without what other texts are put behind: a place, or a command."""
    return re.sub(r"^(the variable \{\}: |`\{\}` |(\{\}: )+)", "", template)


def test_every_template_matches_a_text_of_the_sources() -> None:
    source_templates = every_template()
    sources = "\n".join(source_templates)
    unknown = {
        template
        for table in read_templates("zh").values()
        for template in table
        if not all(part.strip() in sources for part in _own(template).split("{}"))
        and not ARGPARSE.match(template)
    }
    # Some are put together: what is written as `Find {}{}` is `Find files in {}`, among others.
    wide = [
        Templates({text: "known"}, {}, stop="") for text in source_templates if not wordless(text)
    ]
    assert {
        text for text in unknown if not any(translate(text) == "known" for translate in wide)
    } == set()


def test_only_values_that_are_our_own_texts_are_translated() -> None:
    texts = Templates({"{} failed: {}": "{}!{:text}", "too late": "!late"}, {}, stop="!")
    assert texts("run failed: too late") == "run!!late"
    assert texts("too late failed: no idea") == "too late!no idea"


def test_only_our_own_chinese_texts_are_joined_without_spaces() -> None:
    titled = translator_for("zh").rendered_title
    assert titled("Edit a file") == "编辑文件"
    assert titled("Read the output of the background command 2") == "读取后台命令 2 的输出"
    assert titled("Edit a.py") == "编辑 a.py"
    assert titled("Edit 任何文件夹") == "编辑 任何文件夹"
    assert titled("Read 笔记.txt (from line 3)") == "读取 笔记.txt（从第 3 行起）"
    assert titled("List .") == "列出 ."
    assert titled("Edit a.py and 2 more files") == "编辑 a.py，另有 2 个文件"
    assert titled("Search for `x` in src and 1 more") == "在 src，另有 1 项中搜索 `x`"


def test_the_more_specific_of_two_matching_templates_is_used() -> None:
    texts = Templates({"Read {}": "R {}", "Read {} (line {})": "L {1} {0}"}, {}, stop="!")
    assert texts("Read a.py (line 3)") == "L 3 a.py"
    assert texts("Read a.py") == "R a.py"


def test_a_template_matches_whole_texts_only() -> None:
    texts = Templates({"used: {}": "U {:text}"}, {"{} tokens": "{} T"}, stop="!")
    assert texts("used: 5 tokens") == "U 5 T"
    assert texts("Count tokens") == "Count tokens"


def test_a_reason_that_was_made_a_sentence_ends_as_a_sentence_of_the_language() -> None:
    texts = Templates({}, {"too late": "!late"}, stop="。")
    assert texts("too late.") == "!late。"
    assert texts("Who knows.") == "Who knows."


def test_braces_in_a_value_stay_as_they_are() -> None:
    translate = translator_for("zh")
    assert translate.rendered_title("Read {a}/{0:text}.py") == "读取 {a}/{0:text}.py"
    assert ENGLISH.rendered_title("Read {a}") == "Read {a}"


@pytest.mark.parametrize("text", ["List is empty", "docs: read error", "Stop it", "Search"])
def test_a_text_of_others_is_not_translated_as_the_title_of_a_call(text: str) -> None:
    translate = translator_for("zh")
    assert translate.rendered(text) == text
    assert CHINESE.search(translate.rendered_title(text))
