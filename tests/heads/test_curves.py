"""Prune curves and effectiveness, against heads switched off one set at a time."""

import numpy as np
import pytest
import tiny
from subjects import LONG, OTHER, SHORT, small

import attlas
from attlas.data.generated import recall
from attlas.errors import UnknownNameError, UsageError
from attlas.heads.curves import SHARES
from attlas.results import PruneCurve


@pytest.fixture(scope="module")
def subject():
    return attlas.load("recall")


@pytest.fixture(scope="module")
def curves(subject):
    return attlas.prune_curve(
        subject, RANKED, TRIED, ["accuracy_difference", "attention", "random"]
    )


RANKED, TRIED = recall.generate(6, 1), recall.generate(8, 2)


def right(subject, data):
    said = subject.predict([each.text for each in data])["label"]
    return [word.strip() == each.label for word, each in zip(said, data, strict=True)]


@pytest.mark.parametrize("by", ["accuracy_difference", "attention"])
def test_a_point_is_the_accuracy_without_the_least_important_heads(subject, curves, by):
    importance = attlas.head_importance(subject, RANKED, by)
    lowest_first = importance.order()[::-1]
    assert [point.place for point in curves[by].points] == list(SHARES)
    for point in curves[by].points:
        heads = lowest_first[: point.heads]
        assert point.heads == round(8 * point.place)
        with attlas.prune(subject, heads):
            expected = np.mean(right(subject, TRIED))
        assert point.accuracy.mean == pytest.approx(expected)
        assert point.accuracy.low <= expected <= point.accuracy.high
    assert len({point.accuracy.mean for point in curves[by].points}) > 2


def test_all_curves_begin_and_end_alike(curves):
    for end in (0, -1):
        assert len({curve.points[end].accuracy for curve in curves.curves}) == 1
    assert curves["random"].points[0].accuracy.mean == 1
    assert curves["random"].points[-1].accuracy.mean < 0.5


def test_areas_are_means_over_points_and_compared_with_chance(curves):
    areas = {c.name: np.mean([p.accuracy.mean for p in c.points]) for c in curves.curves}
    for curve in curves.curves:
        assert curve.area.mean == pytest.approx(areas[curve.name])
        assert curve.ahead.mean == pytest.approx(areas[curve.name] - areas["random"])
    assert curves["random"].ahead.low == curves["random"].ahead.high == 0


def test_the_random_curve_is_the_mean_of_several_orders(subject):
    one = attlas.prune_curve(subject, RANKED[:2], TRIED, ["random"], draws=1)
    several = attlas.prune_curve(subject, RANKED[:2], TRIED, ["random"], draws=4)
    points = [p.accuracy.mean * len(TRIED) for p in one["random"].points]
    assert np.allclose(points, np.round(points))
    points = [p.accuracy.mean * len(TRIED) * 4 for p in several["random"].points]
    assert np.allclose(points, np.round(points)) and not np.allclose(np.array(points) % 4, 0)
    importance = one.importances[0]
    with attlas.prune(subject, importance.lowest(2)):
        expected = np.mean(right(subject, TRIED))
    assert one["random"].points[2].accuracy.mean == pytest.approx(expected)


def test_texts_that_are_tried_are_not_ranked_on(subject):
    found = attlas.prune_curve(subject, [*RANKED, *TRIED], TRIED, ["attention"])
    alone = attlas.prune_curve(subject, RANKED, TRIED, ["attention"])
    assert found.importances[0].examples == len(RANKED)
    assert found.notes[0] == f"Ranked on {len(RANKED)} texts, tried on {len(TRIED)} others."
    assert found["attention"] == alone["attention"]
    assert found["attention"].ahead is None


def test_all_rankings_are_compared_where_none_is_named(subject):
    found = attlas.prune_curve(subject, RANKED[:2], TRIED[:2], steps=2, draws=1)
    names = ["attattr", "taylor", "taylor_michel", "accuracy_difference", "attention", "random"]
    assert [curve.name for curve in found.curves] == names
    assert [each.by for each in found.importances] == names
    assert found.importances[0].origin.options == {"steps": 2}


def test_effectiveness_switches_off_by_each_texts_own_ranking():
    subject = small("Bert", "ForSequenceClassification", **tiny.BERT_SHAPE)
    texts = [LONG, SHORT, OTHER, "the dog was not good", "a dog sat"]
    data = [(text, number % 2) for number, text in enumerate(texts)]
    found = attlas.head_effectiveness(subject, data, ["attention"])
    for name, direction in (("attention, highest first", -1), ("attention, lowest first", 1)):
        for count, point in enumerate(found[name].points):
            assert (point.place, point.heads) == (count, 2 * count)
            answers = []
            for text, label in data:
                maps = subject.attention(text)
                heads = {}
                for site, weights in zip(maps.sites, maps.weights, strict=True):
                    strength = weights.max(axis=-1).mean(axis=-1)
                    heads[site.name] = np.argsort(direction * strength)[:count]
                with attlas.prune(subject, heads):
                    answers.append(subject.predict(text)["label"].item() == subject.labels[label])
            assert point.accuracy.mean == pytest.approx(np.mean(answers))


def test_the_heads_that_attribution_names_are_those_that_matter(subject):
    data = recall.generate(12, 5)
    found = attlas.head_effectiveness(subject, data, ["attattr"], steps=8)
    highest, lowest = (found[f"attattr, {end} first"] for end in ("highest", "lowest"))
    assert highest.area.mean < lowest.area.mean
    assert highest.points[1].accuracy.high < lowest.points[1].accuracy.low


def test_they_come_back_from_a_file_and_from_json(tmp_path, curves):
    again = PruneCurve.load(curves.save(tmp_path / "curves"))
    assert again.payload() == curves.payload()
    assert PruneCurve.from_dict(curves.to_dict()).to_dict() == curves.to_dict()
    assert len(curves.to_pandas()) == 3 * len(SHARES)
    assert "attlas.prune_curve(subject, rank_on, try_on, by=[" in curves.code()


def test_what_is_done_is_said(subject):
    seen = []
    attlas.prune_curve(subject, RANKED[:2], TRIED[:2], ["attention"], watch=seen.append)
    assert {each.what for each in seen} == {"ranking heads by attention", "pruning"}
    assert all(0 <= each.done < each.total for each in seen)


def test_what_cannot_be_is_said(subject, curves):
    with pytest.raises(UnknownNameError, match="unknown ranking of heads 'tailor'"):
        attlas.prune_curve(subject, RANKED, TRIED, ["tailor"])
    with pytest.raises(UsageError, match=r"by must be a list of rankings, such as \['taylor'\]"):
        attlas.prune_curve(subject, RANKED, TRIED, "taylor")
    with pytest.raises(UsageError, match="there is no text to ask about"):
        attlas.prune_curve(subject, TRIED, TRIED)
    with pytest.raises(UsageError, match="draws must be at least 1, not 0"):
        attlas.prune_curve(subject, RANKED, TRIED, draws=0)
    with pytest.raises(UnknownNameError, match="unknown curve 'taylor'"):
        curves["taylor"]


def test_one_data_set_is_divided_by_the_seed(subject):
    data = recall.generate(7, 4)
    found, again, other = (
        attlas.prune_curve(subject, data, by=["attention"], seed=seed) for seed in (1, 1, 2)
    )
    assert found.notes[0] == "Ranked on 3 texts, tried on 4 others."
    assert found["attention"] == again["attention"]
    assert not np.array_equal(found.importances[0].mean, other.importances[0].mean)
