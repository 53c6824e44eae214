"""The audit of models whose workings are known: its figures, its verdict, its seed."""

from dataclasses import replace
from functools import cache, partial
from itertools import cycle
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from audits import AIMS, READINGS, REMOVALS, TRUTH, bag_texts, small_audit, without_times
from known_models import bag_of_words, copies_attended, ignores_attention, true_scores

import attlas
from attlas.auditing import folder as folder_module
from attlas.auditing import plan as plan_module
from attlas.auditing.collected import run_spans, wall_seconds
from attlas.auditing.report import report as report_module
from attlas.auditing.work import items, removed_tokens
from attlas.errors import UnknownNameError, UsageError
from attlas.removing.ceilings import Best


@cache
def audited():
    return small_audit()


def figures(report, column="value"):
    """Of the table, by method, measure and removal."""
    table = report.to_pandas().set_index(["method", "measure", "removal"])
    return table[column].to_dict()


def probability(weights):
    """Of the class whose logit is the sum of the weights, the other having the same below zero."""
    return 1 / (1 + np.exp(-2 * np.sum(weights)))


def in_closed_form(measure, text):
    """What the true weights of a bag reach: p(x) less p without, or of nothing but, the first k."""
    weights = np.sort(true_scores(text))[::-1]
    sizes = range(1, len(weights))
    parts = [weights[k:] if measure == "comprehensiveness" else weights[:k] for k in sizes]
    return probability(weights) - np.mean([probability(part) for part in parts])


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("measure", AIMS)
def test_the_figures_of_the_truth_are_those_worked_out_by_hand(measure, removal):
    wanted = np.mean([in_closed_form(measure, text) for text in bag_texts(6)])
    assert figures(audited())[TRUTH, measure, removal] == pytest.approx(wanted, abs=1e-6)
    assert figures(audited(), "n")[TRUTH, measure, removal] == 6


def test_the_figures_are_the_means_of_what_judge_says_of_each_text():
    bag, texts = bag_of_words(), bag_texts(6)
    given = attlas.explain(bag, texts, "raw_attention")
    judged = attlas.judge(bag, given, AIMS, removal=REMOVALS, shuffles=2)
    table = pd.concat([each.to_pandas() for each in judged])
    wanted = table.groupby(["measure", "removal"])["value"].mean()
    found = figures(audited())
    for (measure, removal), value in wanted.items():
        assert found["raw_attention", measure, removal] == pytest.approx(value, abs=1e-6)


def test_the_truth_finds_all_and_every_method_what_the_definition_says(tmp_path):
    report = small_audit(out=tmp_path, measures=["location", *AIMS])
    rows = pd.read_parquet(tmp_path / "results.parquet")
    own = rows[rows["measure"] == "location"]
    table = own.pivot(index="text", columns=["removal", "method"], values="value")
    shown = {(each.method, each.removal): each.figure.value for each in report.standings}
    for removal in REMOVALS:
        for method in (*READINGS, "position"):
            found = table[removal]
            reached = found[method].sum() / found["ceiling"].sum()
            assert shown[method, removal] == pytest.approx(min(reached, 1), abs=1e-9)
        assert shown[TRUTH, removal] > 0.9
    # What was computed from the mask is not judged by it.
    named = {name for name, removal in shown if removal == "mask"}
    assert "integrated_gradients from zero" in named
    assert "integrated_gradients from mask" not in named


def test_the_ceiling_is_never_below_an_order_that_was_asked(tmp_path, monkeypatch):
    """Here the search finds nothing: the best of all other orders is the ceiling."""

    def search(erasures, sampled, aims, sizes):
        worst = {"comprehensiveness": -9.0, "sufficiency": 9.0}
        return {
            aim: {
                text: Best(np.arange(len(erasures.content(text))), worst[aim]) for text in sampled
            }
            for aim in aims
        }

    monkeypatch.setattr(removed_tokens, "best_orders", search)
    small_audit(out=tmp_path)
    rows = pd.read_parquet(tmp_path / "results.parquet")
    asked = rows[rows["method"] != "ceiling"].groupby(["measure", "removal", "text"])["value"]
    best = rows[rows["method"] == "ceiling"].set_index(["measure", "removal", "text"])["value"]
    assert {measure for measure, *_ in best.index} == set(AIMS)
    for measure, extreme in (("comprehensiveness", asked.max()), ("sufficiency", asked.min())):
        # Two shuffles were asked too, and only their mean is kept: one may be better than all.
        gain = (best[measure] - extreme[measure]) * (1 if measure == "comprehensiveness" else -1)
        assert (gain >= -1e-9).all() and (gain < 0.5).all()


def test_the_same_seed_gives_the_same_report_and_writes_it(tmp_path):
    out = tmp_path / "new" / "audit"
    report = small_audit(out=out)
    pages = {"report.html", "report.json"}
    written = {"lock", "manifest.json", "parts", "results.parquet", *pages}
    assert {path.name for path in out.iterdir()} == written
    assert not list((out / "parts").iterdir())
    assert report.verdict.sentence in (out / "report.html").read_text("utf-8")
    assert without_times(report) == without_times(audited())


def test_another_seed_draws_other_shuffles():
    other = figures(small_audit(seed=1, removal=["mask"]))
    shuffled, truth = ((name, "comprehensiveness", "mask") for name in ("shuffled", TRUTH))
    assert other[shuffled] != figures(audited())[shuffled]
    assert other[truth] == pytest.approx(figures(audited())[truth], abs=1e-6)


def words(seed, stock, marked):
    """Four or five words, one of them in capitals where that marks it."""
    random = np.random.default_rng(seed)
    drawn = random.choice(stock, size=4 + seed % 2).tolist()
    place = random.integers(len(drawn))
    drawn[place] = drawn[place].upper() if marked else drawn[place]
    return " ".join(drawn)


def distinct(count, stock, marked):
    return list(dict.fromkeys(words(seed, stock, marked) for seed in range(count)))


def test_weights_that_are_all_there_is_are_supported():
    """All attention is on the one word that decides: no reference can do better."""
    texts = distinct(48, ["good", "bad"], marked=True)
    said = small_audit(copies_attended(), texts).verdict
    assert said.word == "supported" and said.texts == len(texts)
    assert said.sentence.startswith("The attention weights show where the prediction rests")
    assert list(said.bounds) == list(REMOVALS) and said.used.low > 0.02
    for bounds in said.bounds.values():
        assert bounds.finding == "for" and bounds.s.low > 0.3
        assert bounds.less_reference.value == pytest.approx(0, abs=0.05)


def test_weights_that_nothing_reads_are_not_supported():
    texts = distinct(40, ["good", "bad", "fine"], marked=False)
    said = small_audit(ignores_attention(), texts).verdict
    assert said.word == "not supported" and said.used.value == pytest.approx(0, abs=1e-6)
    assert {each.finding for each in said.bounds.values()} == {"against"}
    assert said.sentence.startswith("The attention weights do not show where")


def test_five_texts_are_too_few():
    said = small_audit(data=bag_texts(5)).verdict
    assert (said.word, said.texts) == ("too few texts", 5)
    assert said.texts_needed is None or said.texts_needed > 5


def test_what_else_is_asked_for_does_not_move_the_verdict():
    """Methods that use more than the weights are listed beside it; nothing else depends on them."""
    wanted = replace(audited().verdict, readings=())
    asked = {"methods": ["decompx"], "measures": ["log_odds"], "removal": ["pad"]}
    for given in (asked, {"trials": ["permutation"], "texts_for_slowest": 2}):
        assert replace(small_audit(**given).verdict, readings=()) == wanted


def test_the_command_says_what_was_asked():
    asked = {"methods": ["raw_attention"], "measures": ["sufficiency"], "count": 2, "seed": 4}
    assert small_audit(**asked).command == (
        "attlas audit --model 'bag of words' --data 'a list' --text text --count 2 "
        "--method raw_attention --measure sufficiency --removal delete --removal mask "
        "--trial none --seed 4"
    )


@pytest.mark.parametrize(
    ("old", "new"), [("some", "texts_for_expensive"), ("few", "texts_for_slowest")]
)
def test_old_names_of_arguments_still_work_with_a_warning(old, new):
    asked = {"methods": ["raw_attention"], "measures": ["sufficiency"], "removal": ["mask"]}
    with pytest.warns(FutureWarning, match=rf"audit\({old}=…\) is now audit\({new}=…\)"):
        report = small_audit(data=bag_texts(2), **asked, **{old: 2})
    assert report.settings[new] == 2


def test_work_that_was_done_at_the_same_time_counts_once(monkeypatch):
    """Every item of this audit is made to last from 100 to 110, in a run from 90 to 111."""
    monkeypatch.setattr(items, "time", cycle([100.0, 110.0]).__next__)
    for module, now in ((plan_module, 90.0), (folder_module, 95.0), (report_module, 111.0)):
        monkeypatch.setattr(module, "time", partial(float, now))
    report = small_audit(measures=[*AIMS, "sensitivity"])
    assert sum(each.seconds for each in report.costs) >= 10 * 4  # a batch, three methods again
    assert report.seconds == 21


def test_seconds_are_those_of_a_stopwatch():
    start = perf_counter()
    report = small_audit(data=bag_texts(3), measures=["sufficiency"], removal=["mask"])
    taken = perf_counter() - start
    assert 0.9 * taken - 0.5 <= report.seconds <= taken + 0.5


def test_seconds_add_those_of_stopped_runs_without_the_time_between(tmp_path, monkeypatch):
    """The clock goes on by a second each time that it is read, and by a day between the runs."""
    seen = [0.0]

    def clock():
        seen.append(seen[-1] + 1)
        return seen[-1]

    def stop(*_):
        raise KeyboardInterrupt

    for module in (plan_module, folder_module, items, report_module):
        monkeypatch.setattr(module, "time", clock)
    asked = {"data": bag_texts(3), "measures": ["sufficiency"], "removal": ["mask"]}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(items, "measure_batch", stop)
        small_audit(**asked, out=tmp_path)
    stopped = seen[-1]
    seen.append(stopped + 86_400)
    report = small_audit(**asked, out=tmp_path)
    reported = seen[-2]  # the end of the run is noted later
    assert report.seconds == (stopped - 1) + (reported - (stopped + 86_400 + 1))


def test_a_run_that_was_killed_counts_until_its_last_finished_work():
    runs = [(0.0, 1.0), (100.0, 101.0)]
    assert wall_seconds(run_spans(runs, [(2.0, 10.0), (4.0, 9.0), (103.0, 105.0)])) == 15


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0),
        ([(0.0, 10.0), (5.0, 12.0), (20.0, 21.0)], 13),
        ([(20.0, 21.0), (0.0, 10.0), (2.0, 3.0), (10.0, 12.0)], 13),
    ],
)
def test_time_that_processes_share_counts_once(spans, seconds):
    assert wall_seconds(spans) == seconds


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"methods": ["raw_atention"]}, "did you mean 'raw_attention'"),
        ({"measures": ["suficiency"]}, "did you mean 'sufficiency'"),
        ({"trials": ["no such trial"]}, "no such trial"),
        ({"removal": ["maks"]}, "did you mean 'mask'"),
        ({"shuffles": 1}, "shuffles is 2 or more, not 1"),
        ({"texts_for_slowest": 1}, "texts_for_slowest is 2 or more, not 1"),
        ({"seed": -1}, "seed is 0 or more, not -1"),
        ({"count": -1}, "0 or more, not -1"),
        ({"methods": "raw_attention"}, r"names in a list: \['raw_attention'\]"),
    ],
)
def test_mistakes_are_named_before_the_model_is_asked(asked, message, monkeypatch):
    monkeypatch.setattr(bag_of_words().model, "forward", None)
    kind = UnknownNameError if "did you mean" in message else UsageError
    with pytest.raises(kind, match=message):
        small_audit(**asked)


@pytest.mark.parametrize("change", ["bias", "nothing"])
def test_a_model_that_always_says_the_same_is_audited_without_a_warning(change):
    """Its answer is the same to the last bit, or to the eighth digit: nothing ranks the methods."""
    model, words = tiny.subject_parts("sequence classification")
    with torch.no_grad():
        model.classifier.bias[0] += 1000
        model.classifier.weight *= {"bias": 1, "nothing": 0}[change]
    texts = ["the film was not good", "a cat sat", "my dog was not kind", "it was a bad film"]
    methods = ["raw_attention", "attention_rollout", TRUTH]
    measures = [*AIMS, "sensitivity", "randomisation", "decision_flip"]
    report = small_audit(attlas.Subject(model, words), texts, methods, measures)
    assert report.removals == () and report.verdict.word != "supported"
