"""What every measure owes: written once, asked of all that are registered."""

from pathlib import Path

import numpy as np
import pytest
from bag_answers import answers, judge
from known_models import bag_of_words, text_of, true_scores
from part_folders import check_files

from attlas.measures import BETTER, KINDS, MEASURES, NEEDS, Case
from attlas.measures.support.measure import COSTS
from attlas.removing.erasures import Erasures

DOCS = Path(__file__).parents[2] / "docs" / "measures"
NAMES = MEASURES.names()
VALUED = [name for name in NAMES if MEASURES[name].value]
REMOVING = [name for name in VALUED if MEASURES[name].ways]
BY_RANK = [name for name in VALUED if MEASURES[name].by_rank]
every_measure = pytest.mark.parametrize("name", NAMES)
every_value = pytest.mark.parametrize("name", VALUED)
BAG = [0.9, -0.4, 0.55, 1.3, -0.7, 0.2]
SCORES = [0.5, 0.1, -0.2, 2.0, -1.0, 0.4]
MARKS = [0, 1, 0, 1, 0, 0]


def test_every_measure_has_its_file_its_test_and_its_page():
    check_files(MEASURES)


@every_measure
def test_its_record_is_whole(name):
    measure = MEASURES[name]
    assert measure.better in BETTER and measure.kind in KINDS and measure.cost in COSTS
    assert measure.needs, f"needs must name at least one of {', '.join(NEEDS)}"
    assert set(measure.needs) <= set(NEEDS)
    assert measure.reading.endswith("."), "reading must be a sentence"
    assert "arXiv:" in measure.paper, "paper must have an arXiv number, as in arXiv:1911.03429"
    assert (measure.value is None) != (measure.ask is None)
    assert (measure.ask is None) == bool({"removal", "marks"} & set(measure.needs))
    assert (measure.ways is None) == ("removal" not in measure.needs)
    assert measure.function.__doc__


@every_measure
def test_it_has_a_page(name):
    page = (DOCS / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n")
    assert all(f"\n## {part}\n" in page for part in ("What it is", "Formula", "Paper"))


@every_value
def test_it_gives_a_finite_figure(name):
    assert np.isfinite(judge(name, BAG, SCORES, marks=MARKS))


@every_value
@pytest.mark.parametrize("scores", [np.zeros(6), np.ones(6), -np.ones(6), [0, 0, 0, 0, 0, 1e-30]])
def test_equal_scores_do_no_harm(name, scores):
    found = judge(name, BAG, scores, marks=MARKS)
    assert np.isfinite(found) or (name == "tau_leave_one_out" and np.ptp(scores) == 0)


@every_value
def test_a_text_of_one_token_cannot_be_judged(name):
    assert np.isnan(judge(name, [0.9], [1.0], marks=[1]))


@every_value
def test_nothing_marked_and_all_marked_cannot_be_judged(name):
    for marks in ([0] * 6, [1] * 6):
        assert np.isnan(judge(name, BAG, SCORES, marks=marks)) == ("marks" in MEASURES[name].needs)


@every_value
def test_the_same_case_has_the_same_figure(name):
    first, second = (judge(name, BAG, [1, 1, 0, 0, 0, 1], 5, MARKS) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", BY_RANK)
@pytest.mark.parametrize("change", [np.exp, np.cbrt, lambda scores: 7 * scores - 100])
def test_only_the_order_counts_where_it_says_so(name, change):
    before = judge(name, BAG, SCORES, marks=MARKS)
    assert judge(name, BAG, change(np.array(SCORES)), marks=MARKS) == before


@pytest.mark.parametrize("name", sorted(set(VALUED) - set(BY_RANK)))
def test_more_than_the_order_counts_where_it_says_so(name):
    assert judge(name, BAG, np.exp(SCORES)) != pytest.approx(judge(name, BAG, SCORES), rel=1e-3)


@pytest.mark.parametrize("name", [name for name in NAMES if MEASURES[name].curve])
def test_a_figure_is_the_mean_of_its_curve(name):
    measure, case = MEASURES[name], Case(np.array(SCORES), 0)
    both = answers(BAG, np.zeros((1, 6), dtype=bool)), answers(BAG, measure.ways(case))
    curve = measure.curve(case, *both)
    assert curve.shape == (5,)
    assert measure.value(case, *both) == pytest.approx(curve.mean())


@pytest.mark.parametrize("how", ["delete", "mask"])
def test_a_real_model_is_asked_as_the_closed_form_says(how):
    texts = [text_of(count, seed) for seed, count in enumerate((4, 9, 9, 14))]
    erasures = Erasures(bag_of_words().ask(texts), how)
    for number, text in enumerate(texts):
        weights = true_scores(text)
        scores = np.random.default_rng(number).normal(size=len(weights))
        for name in REMOVING:
            measure, case = MEASURES[name], Case(scores, number)
            found = measure.value(
                case, erasures.whole(number), erasures.of(number, measure.ways(case))
            )
            assert found == pytest.approx(judge(name, weights, scores, number), abs=1e-5)


@pytest.mark.parametrize("name", REMOVING)
def test_a_real_text_of_one_token_cannot_be_judged(name):
    erasures, case = Erasures(bag_of_words().ask(["w00"]), "mask"), Case(np.ones(1), 0)
    outcomes = erasures.of(0, MEASURES[name].ways(case))
    assert np.isnan(MEASURES[name].value(case, erasures.whole(0), outcomes))


# Of the others: monotonicity counts signs, which are the same in every order of a bag.
PREFERS_TRUTH = (
    "comprehensiveness",
    "sufficiency",
    "log_odds",
    "decision_flip",
    "tau_leave_one_out",
    "location",
)


@pytest.mark.parametrize("name", PREFERS_TRUTH)
def test_the_truth_is_preferred_to_random_scores(name):
    """On 200 texts of 10 to 50 words: to 10 random scores on average, and never less than one."""
    measure, random = MEASURES[name], np.random.default_rng(0)
    preferred, texts = 0, 200
    for seed in range(texts):
        weights = true_scores(text_of(int(random.integers(10, 51)), seed))
        truth = judge(name, weights, weights, seed)
        drawn = [judge(name, weights, random.random(len(weights)), seed) for _ in range(10)]
        assert not any(measure.is_better(each, truth) for each in drawn)
        preferred += measure.is_better(truth, float(np.mean(drawn)))
    assert preferred >= 0.99 * texts
