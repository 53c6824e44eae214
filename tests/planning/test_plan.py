"""The verb `plan`: totals, figures that grow as the work does, and what it refuses."""

import re
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from subjects import subject

import attlas
from attlas.engine.cluster import WorkerShare
from attlas.errors import AttlasError, UnknownNameError, UsageError
from attlas.explaining import footprint
from attlas.explaining.plan import DOUBT, Plan
from attlas.methods import METHODS
from attlas.models.branching import block_runs
from attlas.models.decomposing import token_terms
from attlas.models.encoding.request import Request
from attlas.planning import PLANNERS, costs
from attlas.planning.costs import Expense, Speed
from attlas.planning.testing import joined
from attlas.scoring import score

TASK = "sequence classification"
TEXTS = ["the cat sat", "a rat sat on the mat"]
EVEN = Speed(start=1.0, token=0.1, back_start=3.0, back_token=0.3, growth=0.01)


@pytest.fixture(scope="module")
def sentiment():
    """The built-in classifier."""
    return attlas.load("sentiment", device="cpu")


@pytest.fixture
def even(monkeypatch):
    """Models of a speed that is the same on every machine."""
    monkeypatch.setattr("attlas.planning.explaining.speed_of", lambda _: EVEN)


def test_two_texts_are_told_with_their_totals(even):
    found = attlas.plan(attlas.explain, subject(TASK), TEXTS, "raw_attention")
    alone = [attlas.plan(attlas.explain, subject(TASK), each, "raw_attention") for each in TEXTS]
    assert (found.texts, [each.texts for each in alone]) == (2, [1, 1])
    assert found.tokens == sum(each.tokens for each in alone)
    assert found.longest == max(each.longest for each in alone)
    assert f"2 texts, {found.tokens} tokens, the longest {found.longest}" in found.lines()[1]


def test_seconds_follow_from_the_speed_and_the_passes():
    assert EVEN.cost(10, 2, 3) == Expense(3 * 1.0 + 2 * 10 * 0.1 * 1.1, 2)
    assert EVEN.cost(10, 2, 3, back=True) == Expense(3 * 3.0 + 2 * 10 * 0.3 * 1.1, 6)


def test_more_steps_and_more_samples_take_longer(even):
    def seconds(method, **options):
        return attlas.plan(attlas.explain, subject(TASK), TEXTS, method, **options).seconds

    few, many = (seconds("attattr", steps=steps) for steps in (20, 200))
    assert many > 5 * few
    assert seconds("kernel_shap", samples=5000) > 5 * seconds("kernel_shap", samples=500)
    assert seconds("gradient") > 2 * seconds("raw_attention")


@pytest.mark.parametrize("method", ["integrated_gradients", "attattr"])
def test_a_method_whose_passes_depend_on_the_text_says_up_to_how_many(even, method):
    found = attlas.plan(attlas.explain, subject(TASK), TEXTS, method)
    assert found.most_seconds > 2 * found.seconds and found.most_passes > 2 * found.passes
    said = " ".join(str(found).split())
    assert f"of the model on each, up to {round(found.most_passes):,} for hard texts time" in said
    assert said.count("for hard texts") == 2
    known = attlas.plan(attlas.explain, subject(TASK), TEXTS, method, steps=20)
    assert known.most_seconds == known.seconds and "up to" not in str(known)


def test_several_plans_take_the_most_of_each_together(even):
    hard, even_so = (
        attlas.plan(attlas.explain, subject(TASK), TEXTS, name) for name in ("attattr", "gradient")
    )
    found = joined("both", "a model", [hard, even_so])
    assert found.most_seconds == hard.most_seconds + even_so.seconds
    assert found.most_passes == (hard.most_passes + even_so.passes) / 2
    assert found.seconds == hard.seconds + even_so.seconds


def test_a_study_timed_on_a_gpu_says_that_others_take_longer():
    notes = attlas.plan(attlas.study, "relations", device="cpu").notes
    assert "without a GPU it takes many times as long" in notes
    assert not any("None" in each for each in notes)
    assert len(attlas.plan(attlas.study, "relations", quick=True, device="cpu").notes) == 1


def test_no_text_takes_more_passes_than_the_plan_says(even):
    options = {"tolerance": 1e-9, "most": 60}
    most = attlas.plan(
        attlas.explain, subject(TASK), TEXTS[0], "integrated_gradients", **options
    ).most_passes
    found = attlas.explain(subject(TASK), TEXTS[0], "integrated_gradients", **options)
    points = int(re.search(r"(\d+) points", " ".join(found.notes))[1])
    assert 30 <= points <= 60 and most == 3 * 60


def test_every_method_says_how_often_it_runs_the_model_or_what_it_weighs():
    assert [each.name for each in METHODS if each.passes is None and each.weighs is None] == []


def test_a_list_is_drawn_from_and_counted_whole(monkeypatch, even):
    monkeypatch.setattr(costs, "SAMPLED", 4)
    found = attlas.plan(attlas.explain, subject(TASK), TEXTS * 10, "raw_attention")
    both = attlas.plan(attlas.explain, subject(TASK), TEXTS, "raw_attention")
    assert found.texts == 20 and found.tokens == 10 * both.tokens


def test_a_plan_runs_the_model_on_no_text_unless_a_target_is_to_be_looked_for(even, monkeypatch):
    own = subject(TASK)
    attlas.plan(attlas.explain, own, TEXTS[0], "raw_attention")  # what is found out about the model
    asked = []
    run = type(own).run_unchecked
    monkeypatch.setattr(type(own), "run_unchecked", lambda *given: asked.append(1) or run(*given))
    attlas.plan(attlas.explain, own, "a longer text about the cat", "raw_attention")
    assert not asked
    with pytest.raises(UnknownNameError, match="label"):
        attlas.plan(attlas.explain, own, TEXTS[0], "raw_attention", target="no such label")


def test_maps_that_will_be_left_out_are_told(monkeypatch, even):
    monkeypatch.setattr("attlas.planning.explaining.MOST_MAP_BYTES", 1)
    found = attlas.plan(attlas.explain, subject(TASK), TEXTS, "raw_attention")
    assert any(each.startswith("maps are left out") for each in found.notes)


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(UsageError, match=r"a plan is of one of explain, .*, not of load"):
        attlas.plan(attlas.load, "sentiment")
    with pytest.raises(UsageError, match="give a list, not an iterator"):
        attlas.plan(attlas.explain, subject(TASK), iter(TEXTS))
    with pytest.raises(UsageError, match="explain_to: missing a required argument: 'out'"):
        attlas.plan(attlas.explain_to, subject(TASK), TEXTS)
    with pytest.raises(UnknownNameError, match="candidate"):
        attlas.plan(attlas.triggers, subject(TASK), [("a cat", "POSITIVE")], candidate=3)
    with pytest.raises(UnknownNameError, match="step"):
        attlas.plan(attlas.explain, subject(TASK), TEXTS, "attattr", step=3)


def test_every_planned_verb_is_public_or_scores():
    assert {name for name in PLANNERS if not hasattr(attlas, name)} == {score.__name__}


def test_a_plan_is_short_and_narrow_whatever_it_says():
    found = Plan(
        "audit", "a/very-long-name" * 9, "cuda:0", 10**6, 10**9, 131072, 1e5, 1e6,
        {f"work {number} of a long name": 1e5 for number in range(5)},
        2**45, 2**35, 2**36, 512, "this and that " * 20, "more " * 60, ("a note " * 30,),
    )  # fmt: skip
    assert len(found.lines()) <= 12 and max(map(len, found.lines())) <= 80
    assert found.between == (found.seconds / DOUBT, found.seconds * DOUBT)


@pytest.mark.parametrize(("method", "copies"), [("attattr", 6), ("value_zeroing", 2)])
def test_what_surely_does_not_fit_is_known_by_the_copies_of_one_layer(method, copies):
    (question,) = subject(TASK).ask(TEXTS[:1], [Request()])
    one = footprint._largest(question)
    assert footprint.least_bytes(question, METHODS[method]) == copies * one


def test_maps_that_cannot_fit_are_refused_with_the_figure(monkeypatch):
    for module in (footprint, costs):
        monkeypatch.setattr(module, "free_bytes", lambda device: 10)
    monkeypatch.setattr(footprint, "WITHOUT_LOOKING", 0)
    message = (
        r"attattr needs whole maps .* of one text of 7 tokens take at least 1 MB, and 1 MB are free"
    )
    ran = []
    monkeypatch.setattr("attlas.methods.attattr.attributions", lambda *_: ran.append(1))
    for verb in (attlas.explain, lambda *given: attlas.plan(attlas.explain, *given)):
        with pytest.raises(AttlasError, match=message):
            verb(subject(TASK), TEXTS[0], "attattr")
    assert ran == []


def test_copies_that_run_at_once_are_counted(monkeypatch):
    """Eight points of a path are eight texts, as far as a batch of them reaches."""
    (question,) = subject(TASK).ask(["the cat sat"], Request())
    asked = replace(question, maps=False)
    for name, weighs in (("integrated_gradients", 8), ("attattr", 4 * len(asked.subject.sites))):
        method = METHODS[name]
        one = footprint.footprint(asked, method)
        found = footprint.peak_bytes(asked, method, 1)
        assert found >= one.total + (weighs - 1) * one.states
    monkeypatch.setattr(footprint, "rows_of", lambda device, tokens: 3)
    monkeypatch.setattr(footprint, "spare_bytes", lambda device: 10)
    along, branches = METHODS["integrated_gradients"], METHODS["attattr"]
    each = footprint.footprint(asked, along)
    assert footprint.peak_bytes(asked, along, 1) == each.total + 2 * each.states
    assert (
        footprint.peak_bytes(asked, branches, 1) == footprint.footprint(asked, branches).total + 10
    )
    plain = METHODS["gradient"]
    assert footprint.peak_bytes(asked, plain, 2) == 2 * footprint.footprint(asked, plain).total


@pytest.mark.parametrize("method", ["globenc", "alti", "decompx"])
def test_vectors_of_pairs_of_tokens_are_counted(method, monkeypatch):
    """As many texts as are divided into terms together have a vector for each pair."""
    (question,) = subject(TASK).ask(["the cat sat"] * 8, Request())
    asked, chosen = replace(question, maps=False), METHODS[method]
    tokens, width = len(asked.inputs.tokens[0]), asked.subject.model.config.hidden_size
    each, one = footprint.footprint(asked, chosen), chosen.pair_vectors * tokens**2 * width * 4
    assert chosen.pair_vectors and footprint.peak_bytes(asked, chosen, 1) == each.total + one
    monkeypatch.setattr(token_terms, "PAIRS_AT_ONCE", {"cpu": 3 * tokens**2})
    assert footprint.peak_bytes(asked, chosen, 8) == 8 * each.total + 3 * one


def test_copies_of_a_block_are_counted_as_many_as_run_at_once(monkeypatch):
    """Value zeroing runs each block on a copy of its input for each token."""
    (question,) = subject(TASK).ask(TEXTS[:1], [Request()])
    asked, method = replace(question, maps=False), METHODS["value_zeroing"]
    each, tokens = footprint.footprint(asked, method), len(asked.inputs.tokens[0])
    assert footprint.peak_bytes(asked, method, 1) == each.total * (1 + tokens)
    monkeypatch.setattr(block_runs, "rows_of", lambda device, length: 3)
    assert footprint.peak_bytes(asked, method, 1) == each.total * (1 + 3)


def test_a_copy_of_the_model_in_float64_is_counted(monkeypatch):
    (question,) = subject(TASK).ask(TEXTS[:1], [Request()])
    method, weights = METHODS["lrp_relevance"], footprint.weight_bytes(question.subject)
    found = footprint.peak_bytes(question, method, 1)
    assert found > 2 * weights > 0
    monkeypatch.setattr(type(question.subject), "dtype", torch.bfloat16)
    assert footprint.peak_bytes(question, method, 1) < found - 2 * weights


def test_projections_of_each_row_weigh_where_a_map_is_kept_whose_rows_see_other_keys():
    weigh, one = METHODS["effective_attention"].weighs, {"layer": -1}
    (causal,), (both,) = (subject(task).ask(TEXTS[:1], [Request()]) for task in ("causal lm", TASK))
    without = replace(causal, maps=False)
    assert weigh(causal, one) > weigh(without, one) == weigh(both, one) == 1
    assert weigh(without, {"layer": None}) == 2  # the readout is found ahead


@pytest.mark.parametrize("method", ["globenc", "alti"])
def test_vectors_of_pairs_weigh_less_beside_a_wider_model(method, monkeypatch):
    (question,) = subject(TASK).ask(TEXTS[:1], [Request()])
    weigh, config = METHODS[method].weighs, question.subject.model.config
    narrow = weigh(question, {})
    monkeypatch.setattr(config, "hidden_size", 2 * config.hidden_size)
    assert weigh(question, {}) - 2 == (narrow - 2) / 2


def test_a_method_of_few_passes_begins_no_more_of_them(even):
    (question,) = subject(TASK).ask(TEXTS[:1], [Request()])
    tokens = len(question.inputs.tokens[0])
    assert EVEN.in_batches(question, 2) == EVEN.cost(tokens, 2, 2)
    assert EVEN.in_batches(question, 50) == EVEN.cost(tokens, 50, costs.STARTS)


def test_a_batch_is_chosen_to_fit_what_is_free(monkeypatch):
    (question,) = subject(TASK).ask(["the cat sat"] * 8, Request())
    asked, method = replace(question, maps=False), METHODS["gradient_attention"]
    each = footprint.footprint(asked, method).total
    monkeypatch.setattr(footprint, "WITHOUT_LOOKING", 0)
    monkeypatch.setattr(footprint, "free_bytes", lambda device: int(3.5 * each / footprint.SHARE))
    assert footprint.fitting_rows(asked, method) == 3
    found = attlas.explain(subject(TASK), ["the cat sat"] * 8, method.name, maps=False)
    monkeypatch.undo()
    whole = attlas.explain(subject(TASK), ["the cat sat"] * 8, method.name, maps=False)
    for one, other in zip(found, whole, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["raw_attention", "generic_relevance", "attattr", "kernel_shap", "alti"]
)
def test_the_estimate_is_within_three_times_of_what_it_takes(sentiment, method):
    words = "a warm and funny film that is not a great one but i could not look away from it"
    texts = [" ".join(words.split()[: 4 + number % 15]) for number in range(12)]
    attlas.explain(sentiment, texts[:1], method, maps=False)
    taken = []
    for _ in range(2):
        begun = time.perf_counter()
        attlas.explain(sentiment, texts, method, maps=False)
        taken.append(time.perf_counter() - begun)
    found = attlas.plan(attlas.explain, sentiment, texts, method, maps=False)
    print(f"{method}: estimated {found.seconds:.2f} s, took {min(taken):.2f} s")
    assert min(taken) / 3 < found.seconds < 3 * max(taken)


def test_workers_share_the_time(monkeypatch, tmp_path, sentiment):
    shares = {"ray": WorkerShare(4, 1, 0)}
    monkeypatch.setattr("attlas.planning.connected", lambda engine: nullcontext())
    monkeypatch.setattr("attlas.planning.share_of", lambda ray, engine, device: shares[engine.name])
    alone = Plan("explain_to", "a", "cpu", 2, 5, 3, 1, 12.0, {"work": 8.0}, 0, 0)
    monkeypatch.setitem(PLANNERS, "explain_to", lambda given, options: alone)
    given = (sentiment, TEXTS, tmp_path / "a.parquet", "raw_attention")
    shared = attlas.plan(attlas.explain_to, *given, engine="ray")
    assert (shared.seconds, shared.seconds_by_work) == (3.0, {"work": 2.0})
    assert shared.notes == ("4 workers on Ray, if there are pieces for all; without their start",)
    assert attlas.plan(attlas.explain_to, *given) == alone
