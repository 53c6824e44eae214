"""The sentences of a verdict: each says what its interval says, and its commands exist."""

import re
import shlex
from dataclasses import replace

import pytest
from typer.main import get_command

from attlas.auditing.plan import AuditCommand
from attlas.auditing.verdict import advice, wording
from attlas.auditing.verdict.rules import RemovalTest, Rules, WeightsTest
from attlas.cli.main import commands as all_commands
from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate
from attlas.results.support.report_sections import Figure
from attlas.results.support.verdict import Direction


def between(low, high):
    return Estimate((low + high) / 2, low, high, 100)


GOOD = RemovalTest(
    s=between(0.7, 0.8),
    less_control=between(0.2, 0.4),
    less_reference=between(-0.05, 0.03),
    room=between(0.2, 0.3),
    carrying=between(0.8, 0.9),
    contrast=between(0.5, 0.6),
    typical=between(0.3, 0.4),
    effective=60.0,
)


def told(word="supported", one=GOOD, other=GOOD, **changes):
    """Two removals tested on 100 texts."""
    given = {
        "word": word,
        "method": "attention_rollout",
        "tested": {"delete": one, "mask": other},
        "used": between(0.1, 0.3),
        "controls": {"delete": "position", "mask": "other_text attention_rollout"},
        "references": {"delete": "integrated_gradients from zero", "mask": "gradient"},
        "needed": None,
        "texts": 100,
        "same_word": 1.0,
        "rules": Rules(floor=0.3, margin=0.1),
        "model": "my model",
    }
    return WeightsTest(**{**given, **changes})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "they find 70 % to 80 % of what matters, and another method, integrated_gradients"),
        ({}, "finds between 3 points less and 5 more"),
        ({"less_reference": between(-0.3, -0.2)}, "finds 20 to 30 points more"),
        ({"less_reference": between(0.1, 0.2)}, "finds 10 to 20 points less"),
        ({"less_reference": None}, "no other method to hold them against"),
        ({"s": between(0.1, 0.2)}, "they find at most 20 % of what matters, and 30 % is asked"),
        ({"s": between(-0.3, 0.5)}, "−30 % to 50 % of what matters, which may be less than the 30"),
        ({"less_control": between(-0.3, -0.1)}, "surely no more than taking the first tokens"),
        ({"less_control": between(-0.3, 0.1)}, "perhaps no more than taking the first tokens"),
        ({"effective": 4.2}, "only about 4 of the texts have anything to find in them, and 10"),
        ({"contrast": between(0.0, 0.05)}, "nothing to point at"),
    ],
)
def test_why_is_worded_by_the_interval(changed, words):
    assert words in wording.why(told(one=replace(GOOD, **changed)), "delete")


def test_the_scale_is_told_once_in_a_sentence():
    said = wording.sentence(told())
    assert said.count("0 %: no more than chance") == 1
    assert "when tokens are deleted, they find" in said and "when tokens are masked, they" in said
    flat = replace(GOOD, contrast=between(0.0, 0.05))
    alike = wording.sentence(told("not supported", flat, flat))
    assert alike.endswith(
        "when tokens are deleted or masked, no token matters more than another, "
        "so there is nothing to point at."
    )


def test_partly_says_which_removal_says_what():
    behind = replace(GOOD, less_reference=between(-0.3, -0.2))
    said = wording.sentence(told("partly", GOOD, behind))
    first, second = said.index("they do: when tokens are deleted"), said.index("another method may")
    assert first < second < said.index("when tokens are masked")


def test_which_way_gives_both_shares():
    highlighted, every = Figure(0.75, 0.7, 0.8, 100), Figure(0.6, 0.5, 0.7, 100)
    said = wording.which_way("raw_attention", [Direction("delete", highlighted, every)])
    assert "75 % (70 % to 80 %) speaks for it and 25 % against it; of all tokens, 60 %" in said
    assert "no sign" in said
    assert wording.which_way("raw_attention", []) == "Which way the tokens pull was not measured."


def commands(said):
    return [each for each in re.findall("`([^`]+)`", said) if each.startswith("attlas ")]


def check_command(command):
    """Every option of a command exists, and it parses."""
    _, verb, *words = shlex.split(command)
    get_command(all_commands()).commands[verb].make_context(verb, words)


BEHIND = replace(GOOD, less_reference=between(-0.3, -0.2))
PLAIN = replace(GOOD, plain=between(0.0, 0.1))
OPEN = replace(GOOD, less_control=between(-0.02, 0.05))
UNSURE = replace(GOOD, plain=between(0.1, 0.5))
FLAT = replace(GOOD, contrast=between(0.0, 0.05))


@pytest.mark.parametrize(
    ("test", "words", "count"),
    [
        (told(), "may be read as a map of where", 2),
        (
            told("partly", BEHIND, GOOD),
            "Use integrated_gradients from zero instead, which finds more",
            2,
        ),
        (told("not supported", GOOD, BEHIND), "Use gradient instead, which finds more", 2),
        (told("partly"), "Do not show heat maps of the weights alone. To see", 1),
        (told("partly", PLAIN, PLAIN), "weights as they are: show attention_rollout, which", 2),
        (told("not supported", FLAT, FLAT), "Show no heat map of single words here", 0),
        (told("too few texts", needed=1300), "Bring about 1,200 more texts: about 1,300", 0),
        (told("too few texts", OPEN, needed=None), "More texts like these would not settle it", 1),
        (
            told("too few texts", UNSURE, UNSURE, needed=240),
            "about 240 in all are likely to tell whether the weights do as they are. Until then: "
            "do not show the weights as they are: show attention_rollout:",
            1,
        ),
        (told("too few texts", UNSURE, UNSURE), "would not tell whether they would do", 1),
    ],
)
def test_the_next_step_fits_the_word_and_its_commands_exist(test, words, count):
    said = advice.next_step(test)
    assert words in said and len(commands(said)) == count
    for command in commands(said):
        assert "--model 'my model'" in command
        check_command(command)


def asked(total, drawn=60, has_name=True, **options):
    given = {"data": "my texts.csv", "count": None, "quick": False, "trial": []}
    return AuditCommand({**given, **options}, drawn, total, has_name)


WITHOUT = "attlas audit --data 'my texts.csv'"


@pytest.mark.parametrize(
    ("command", "times", "said"),
    [
        (
            asked(872, quick=True),
            2.5,
            "Audit about 150 texts of the 872, without `--quick`: "
            f"`{WITHOUT} --count 150 --trial none`",
        ),
        (asked(872, count=60), 100.0, f"Audit all 872 texts: `{WITHOUT} --trial none`"),
        (
            asked(None, count=60),
            3.0,
            f"Audit about 180 texts: `{WITHOUT} --count 180 --trial none`",
        ),
        (asked(872, has_name=False), 2.0, "Audit about 120 texts of the 872: `count=120`."),
        (asked(60, quick=True), 5.0, ""),
    ],
)
def test_more_texts_are_asked_for_by_a_command_if_there_are_more(command, times, said):
    assert command.with_more(times) == said
    for each in commands(said):
        check_command(each)


def test_the_former_threshold_is_refused_by_name():
    with pytest.raises(UsageError, match=r"Rules\(delta=…\) is now two thresholds: .*floor= and"):
        Rules(delta=0.1)


def test_what_the_weights_find_as_they_are_is_said_where_only_that_is_open():
    said = wording.sentence(told("too few texts", UNSURE, UNSURE, needed=240))
    assert "to tell supported from partly:" in said and "as attention_rollout reads them" in said
    assert "(raw_attention), they find 10 % to 50 % of it when tokens are deleted and 10" in said
    assert said.endswith("30 % is asked.")
    for changed in ({"used": between(0.01, 0.3)}, {"same_word": 0.6}):
        test = told("too few texts", UNSURE, UNSURE, needed=240, **changed)
        assert "supported from partly" not in wording.sentence(test)
        assert advice.next_step(test).endswith(advice.UNTIL_THEN)


def test_too_few_texts_say_what_they_can_still_tell():
    behind = replace(OPEN, less_reference=between(-0.26, -0.21))
    for one, other, ruled_out in ((OPEN, GOOD, False), (behind, GOOD, True), (OPEN, behind, True)):
        test = told("too few texts", one, other, needed=1300)
        assert test.is_ruled_out() == ruled_out
        assert ("to tell partly from not supported:" in wording.sentence(test)) == ruled_out
        assert advice.next_step(test).startswith("Bring about 1,200") != ruled_out


def test_where_supported_is_ruled_out_the_next_step_names_the_better_method():
    behind = replace(OPEN, less_reference=between(-0.26, -0.21))
    said = advice.next_step(told("too few texts", GOOD, behind, needed=1300))
    assert "Use gradient instead" in said and "--method gradient" in said
    assert said.endswith("About 1,300 texts in all would tell how far the weights can be read.")


@pytest.mark.parametrize(
    ("gains", "named"),
    [
        ({"attn_lrp": 0.3}, "attn_lrp"),
        ({"attn_lrp": 0.3, "attattr": 0.4}, "attattr"),
        ({"attn_lrp": 0.2}, "gradient"),  # which finds a quarter more
        ({}, "gradient"),
    ],
)
def test_the_next_step_names_what_finds_most(gains, named):
    said = advice.next_step(told("partly", GOOD, BEHIND, gains=gains))
    assert f"Use {named} instead" in said and f"--method {named}" in said


def test_a_reading_that_finds_surely_more_is_named_where_no_reference_does():
    said = advice.next_step(told("partly", gains={"alti": 0.1}))
    assert "Use alti instead" in said


def test_a_removal_against_the_weights_rules_supported_out():
    assert told("too few texts", OPEN, replace(GOOD, s=between(0.1, 0.2))).is_ruled_out()
    assert told("too few texts", OPEN, replace(GOOD, less_reference=None)).is_ruled_out()


def test_a_command_takes_the_place_of_the_request_for_more_texts():
    behind = replace(OPEN, less_reference=between(-0.26, -0.21))
    for test, start, end in (
        (told("too few texts", OPEN, needed=1300), "Audit all. Until then", advice.UNTIL_THEN),
        (told("too few texts", UNSURE, UNSURE, needed=240), "Audit all. Until then: do not", "`."),
        (told("too few texts", GOOD, behind, needed=1300), advice.NO_MAPS, "Audit all."),
    ):
        said = advice.with_command(advice.next_step(test), "Audit all")
        assert said.startswith(start) and said.endswith(end)


UNUSED = between(0.0, 0.01)
LOW = replace(GOOD, s=between(0.1, 0.2))
NO_BETTER = replace(GOOD, less_control=between(-0.2, -0.1))


@pytest.mark.parametrize(
    ("test", "short", "words"),
    [
        (told(), "Yes, to see which words count", "attention does not tell"),
        (told("partly", BEHIND, GOOD), "Only in part", "another method finds more"),
        (told("partly"), "Only in part", "another method may find more"),
        (told("partly", GOOD, LOW), "Only in part", "not by every way of testing it"),
        (told("not supported", LOW, LOW), "No", "mostly not the words"),
        (told("not supported", NO_BETTER, NO_BETTER), "No", "no better than a simple rule"),
        (told("not supported", FLAT, FLAT), "No", "nothing that a heat map could point at"),
        (told("not supported", used=UNUSED), "No", "hardly depend on its attention"),
        (
            told("too few texts", OPEN, needed=1300),
            "It cannot be told yet",
            "100 texts are too few",
        ),
        (told("too few texts", OPEN), "It cannot be told", "would not either"),
        (
            told("too few texts", UNSURE, UNSURE, needed=240),
            "It cannot yet be told in full",
            "after further calculation (attention_rollout); 100 texts are too few",
        ),
        (
            told("too few texts", UNSURE, UNSURE),
            "It cannot be told in full",
            "whether it does taken as it is, these texts do not settle",
        ),
        (
            told("too few texts", replace(BEHIND, less_control=between(-0.02, 0.05)), needed=130),
            "Not fully; how far cannot be told yet",
            "or no more than a simple rule",
        ),
    ],
)
def test_the_answer_in_everyday_words_starts_with_the_shortest_one(test, short, words):
    first, rest = advice.in_everyday_words(test).split(". ", 1)
    assert first == short and words in rest
    assert not re.search(r"weights|token|s =", rest)


def test_whoever_waits_for_more_texts_is_told_to_show_no_map():
    assert advice.next_step(told("too few texts", OPEN, needed=130)).endswith(advice.UNTIL_THEN)
