"""Drafts: what the model was asked before a run was stopped is not asked again."""

import numpy as np
import pytest
from audits import READINGS, small_audit, without_times

from attlas.auditing.folder import Folder
from attlas.auditing.work import drafts
from attlas.measures.support.recomputing import Recipe
from attlas.removing.erasures import Erasures

TEXTS = 6


class Counted:
    """Counts the ways that the model is asked for and the texts that methods explain."""

    def __init__(self, monkeypatch):
        self.ways, self.explained, self.stop_after = [], [], None
        ask, score = Erasures._ask_pool, Recipe.content_scores

        def counted(erasures, pool, wanted):
            if self.stop_after is not None and len(self.ways) >= self.stop_after:
                raise KeyboardInterrupt
            own = [(erasures.how, text, way.tobytes()) for text in wanted for way in wanted[text]]
            self.ways.extend(own)
            ask(erasures, pool, wanted)

        def counted_scores(recipe, question):
            self.explained.extend((recipe.method.name, index) for index in question.order)
            return score(recipe, question)

        monkeypatch.setattr(Erasures, "_ask_pool", counted)
        monkeypatch.setattr(Recipe, "content_scores", counted_scores)


def test_nothing_is_asked_twice_and_the_report_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(drafts, "EVERY", 0.0)
    monkeypatch.setattr(drafts, "PORTION", 200)
    monkeypatch.setattr(Erasures, "work", lambda erasures, text: 1)
    counted = Counted(monkeypatch)
    whole = small_audit(out=tmp_path / "whole")
    asked, explained = sorted(counted.ways), sorted(counted.explained)
    assert len(asked) > 200
    counted.ways.clear()
    counted.explained.clear()
    counted.stop_after = len(asked) // 2
    with pytest.raises(KeyboardInterrupt):
        small_audit(out=tmp_path / "stopped")
    kept = sorted(path.name for path in (tmp_path / "stopped" / "parts").glob("draft*"))
    assert any("scores" in name for name in kept) and any("answers" in name for name in kept)
    counted.stop_after = None
    resumed = small_audit(out=tmp_path / "stopped")
    again = without_times(resumed)
    assert again == without_times(whole)
    assert sorted(counted.ways) == asked
    by_method = [each for each in counted.explained if each[0] == "raw_attention"]
    assert len(by_method) == len([each for each in explained if each[0] == "raw_attention"])
    assert not list((tmp_path / "stopped" / "parts").glob("draft*"))


@pytest.mark.parametrize("stop_after", [1, 4, 7])
def test_a_trial_and_a_robustness_measure_go_on_inside(tmp_path, monkeypatch, stop_after):
    monkeypatch.setattr(drafts, "EVERY", 0.0)
    computed, stop, keep = [], [None], drafts.KeptParts.keep

    def counted(parts, part, compute):
        def run():
            if len(computed) == stop[0]:
                raise KeyboardInterrupt
            computed.append((parts._name, part))
            return compute()

        return keep(parts, part, run)

    monkeypatch.setattr(drafts.KeptParts, "keep", counted)
    measures = ("sufficiency", "sensitivity", "randomisation")
    asked = {"trials": ["uniform", "erasure"], "measures": measures, "methods": [READINGS[1]]}
    whole = small_audit(out=tmp_path / "whole", **asked)
    parts = sorted(computed)
    assert len({name for name, _ in parts}) == 7 and len(parts) > 14  # each has several
    computed.clear()
    stop[0] = stop_after
    with pytest.raises(KeyboardInterrupt):
        small_audit(out=tmp_path / "stopped", **asked)
    stop[0] = None
    resumed = small_audit(out=tmp_path / "stopped", **asked)
    assert sorted(computed) == parts  # each once, in both runs together
    assert without_times(resumed) == without_times(whole)
    assert not list((tmp_path / "stopped" / "parts").glob("draft*"))


@pytest.mark.parametrize(
    "arrays", [[0.1], [[]], [[np.nan, 1.0], [[1.0], [2.0]]], [np.zeros((2, 0, 3)), 4.0]]
)
def test_parts_are_read_back_as_they_were(tmp_path, monkeypatch, arrays):
    monkeypatch.setattr(drafts, "EVERY", 0.0)
    made = [np.asarray(each, dtype=np.float64) for each in arrays]
    with Folder(tmp_path, {}) as folder:
        drafts.KeptParts(folder, "trial x").keep("a part", lambda: made)
    with Folder(tmp_path, {}) as folder:
        again = drafts.KeptParts(folder, "trial x").keep("a part", lambda: pytest.fail("asked"))
    assert [each.shape for each in again] == [each.shape for each in made]
    for one, other in zip(again, made, strict=True):
        np.testing.assert_array_equal(one, other)


def test_drafts_are_written_every_half_minute_and_not_before(tmp_path, monkeypatch):
    assert drafts.EVERY == 30.0
    counted = Counted(monkeypatch)
    counted.stop_after = 1
    with pytest.raises(KeyboardInterrupt):
        small_audit(out=tmp_path)
    assert not list((tmp_path / "parts").glob("draft*"))


def test_portions_hold_all_ways_in_order_and_at_most_so_much_work(monkeypatch):
    monkeypatch.setattr(drafts, "PORTION", 100)

    class Known:
        def work(self, text):
            return {0: 30, 1: 7, 2: 1000}[text]

    wanted = {text: np.random.default_rng(text).random((count, 4)) < 0.5 for text, count in
              ((0, 5), (1, 12), (2, 3))}  # fmt: skip
    portions = list(drafts._portions.__wrapped__(Known(), wanted))
    for text, ways in wanted.items():
        assert np.array_equal(np.concatenate([p[text] for p in portions if text in p]), ways)
    work = [sum(Known().work(text) * len(p[text]) for text in p) for p in portions]
    assert all(each <= 100 for each in work if each not in (1000,)) and min(work) > 0
    assert [len(p) for p in portions if 2 in p] == [1, 1, 1]  # one way is the least
