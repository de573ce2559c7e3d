"""The judge of the byte fuzz is fair where the specifications leave open what a line is."""

from __future__ import annotations

from tests.protocol.byte_reference import Expected
from tests.protocol.byte_unclear import UnclearLines

NAMELESS: list[dict[str, int | None]] = [{"id": None}]
NAMED: list[dict[str, int | None]] = [{"id": None}, {"id": 62}]


def unclear(*lines: str) -> UnclearLines:
    """Lines that were sent in this order."""
    made = UnclearLines()
    for line in lines:
        made.add(Expected(unclear=True, line=line))
    return made


def test_an_answer_is_matched_with_the_only_line_that_explains_it() -> None:
    for order in ([NAMELESS, NAMED], [NAMED, NAMELESS]):
        for lines in (("[broken", '[{"id":62}'), ('[{"id":62}', "[broken")):
            judge = unclear(*lines)
            assert [judge.explain(answers) for answers in order] == [True, True]


def test_more_answers_than_lines_are_not_explained() -> None:
    judge = unclear("[broken")
    assert judge.explain(NAMELESS)
    assert not judge.explain(NAMELESS)
    assert not unclear("[broken").explain(NAMED)


def test_only_lines_of_the_previous_round_may_still_be_answered() -> None:
    judge = unclear('{"id":62}')
    judge.next_round()
    assert judge.explain([{"id": 62}])
    judge = unclear('{"id":62}')
    judge.next_round()
    judge.next_round()
    assert not judge.explain([{"id": 62}])
