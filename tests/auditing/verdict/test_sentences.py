"""Over figures of all kinds, no sentence says more, or other, than the interval beside it."""

from dataclasses import replace

import numpy as np
from drawn_evidence import drawn_removal_test

from attlas.auditing.verdict import advice, wording
from attlas.auditing.verdict.rules import RemovalTest, Rules, WeightsTest, decide
from attlas.mathematics.intervals import Estimate
from attlas.results.support.report_sections import Figure
from attlas.results.support.verdict import Direction

RULES = Rules()
USED = Estimate(0.2, 0.1, 0.3, 100)


def told(tests, used=USED, same=1.0, needed=None):
    by_removal = dict(zip(("delete", "mask", "pad"), tests, strict=False))
    controls = dict.fromkeys(by_removal, "position")
    references = {
        name: None if each.less_reference is None else "gradient"
        for name, each in by_removal.items()
    }
    word = decide(tests, used, RULES)
    return WeightsTest(
        word, "raw_attention", by_removal, used, controls, references, needed, 60, same, RULES
    )


def percent(value):
    return f"{100 * value + 0.0:.0f} %".replace("-", "−")


def some(count):
    random = np.random.default_rng(1)
    return [drawn_removal_test(random) for _ in range(count)]


def test_reasons_are_worded_by_the_intervals():
    for own in some(200):
        said = wording.why(told([own]), "delete")
        if own.is_flat(RULES):
            assert said.startswith("no token matters")
        elif not own.is_carried(RULES):
            assert "needed" in said
        elif own.s.high < RULES.floor:
            assert f"at most {percent(own.s.high)}" in said
        else:
            assert f"{percent(own.s.low)} to {percent(own.s.high)}" in said
            assert ("surely" in said) == (own.beats_control(RULES) is False)


def test_a_reference_is_said_to_find_more_if_the_whole_interval_says_so():
    for own in some(200):
        less = own.less_reference
        if less is None or own.finding(RULES) not in ("for", "in part"):
            continue
        said = wording.why(told([own]), "delete")
        assert ("between" in said) == (less.low <= 0 <= less.high)


def test_every_case_has_its_sentences():
    random = np.random.default_rng(2)
    for _ in range(60):
        tests = [drawn_removal_test(random) for _ in range(random.integers(1, 4))]
        for used in (USED, None, Estimate(0.0, 0.0, 0.01, 9), Estimate(0.02, 0.0, 0.1, 9)):
            test = told(tests, used)
            assert wording.sentence(test).endswith(".") and advice.next_step(test)
            assert "nan" not in wording.sentence(test)
            assert advice.in_everyday_words(test).endswith(".")


def test_what_was_not_tested_is_said():
    own = replace(some(1)[0], less_reference=None)
    notes = " ".join(wording.notes(told([own], used=None, same=0.8)))
    assert "could not be tested" in notes and "no reference" in notes
    assert "one way only" in notes and "80 %" in notes
    assert isinstance(own, RemovalTest)


def test_which_way_gives_the_shares_with_their_interval():
    shares = Figure(0.75, 0.7, 0.8, 60), Figure(0.5, 0.4, 0.6, 60)
    said = wording.which_way("raw_attention", [Direction("delete", *shares)])
    assert all(each in said for each in ("75 %", "70 % to 80 %", "25 %", "50 %", "no sign"))
    assert "not measured" in wording.which_way("raw_attention", [])
