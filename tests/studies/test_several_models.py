"""Several models in one folder: found in order, described, and what an interval is over."""

import json

import pytest

from attlas.studies.support.several_models import (
    described,
    models_at,
    named,
    over_models,
    what_varies,
)


@pytest.fixture
def folder(tmp_path):
    for seed, right in ((1, 0.8), (0, 0.9)):
        inside = tmp_path / f"seed-{seed}"
        inside.mkdir()
        (inside / "config.json").write_text("{}")
        record = {"base": "small", "task": "sst2", "steps": 7, "dev accuracy": right}
        (inside / "training.json").write_text(json.dumps(record))
    (tmp_path / "other").mkdir()
    return tmp_path


def test_the_models_of_a_folder(folder):
    inside = [(folder / f"seed-{seed}").as_posix() for seed in (0, 1)]
    assert models_at(str(folder)) == inside
    assert models_at(inside[0]) == [inside[0]] and models_at("sentiment") == ["sentiment"]
    assert models_at(str(folder / "other")) == [str(folder / "other")]


def test_a_model_that_was_trained_again_is_another_one(folder):
    one = f"{folder}/seed-0"
    assert named(one) == one and named("sentiment") == "sentiment"
    (folder / "seed-0" / "training.json").write_text('{"weights": "abc"}')
    assert named(one) == f"{one} of weights abc"
    (folder / "seed-0" / "config.json").unlink()
    assert one in models_at(str(folder)), "parts that are kept need its record alone"


def test_they_are_described_by_the_record_of_their_training(folder):
    told = described(models_at(str(folder)))
    assert "small, fine-tuned on sst2 in 7 steps" in told and "0.800 to 0.900" in told
    assert described(["sentiment"]) == "Models: sentiment."


def test_an_interval_is_over_models_if_there_are_several():
    one, other = [0.1, 0.2, None, 0.3], [0.4, 0.4]
    both = over_models([one, other])
    assert both.value == pytest.approx(0.3) and both.n == 2
    assert both.high - both.value == pytest.approx(12.706 * 0.1, rel=1e-3)  # Student, two values
    alone = over_models([one])
    assert alone.value == pytest.approx(0.2) and alone.high < 0.31
    assert (what_varies([one]), what_varies([one, other])) == ("texts", "models")
