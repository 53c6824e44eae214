"""Work on a real Ray of this machine: what it writes is what one process writes, to the bit."""

import json
import re
from pathlib import Path

import pytest
import yaml
from audits import without_times

import attlas
from attlas.engine.cluster import connected
from attlas.explaining import writing_scores

pytest.importorskip("ray", reason="Ray is not installed: pip install 'attlas[ray]'")
PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
TEXTS = ["zap is the word", "a plain film", "", "the word was zap once more", "nothing to see"] * 8
ONE = attlas.Engine("ray", workers=1)


@pytest.fixture(scope="module")
def subject():
    return attlas.load("shortcut_token")


@pytest.fixture(scope="module")
def cluster():
    """One Ray for the tests of this file: starting it takes most of their time."""
    with connected(attlas.Engine("ray", workers=2)) as ray:
        yield ray


def test_a_file_of_scores_is_that_of_one_process_to_the_bit(
    subject, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(writing_scores, "CHUNK", 8)
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    steps = []
    attlas.explain_to(subject, TEXTS, here, "raw_attention")
    written = attlas.explain_to(
        subject, TEXTS, there, "raw_attention", engine=ONE, watch=steps.append
    )
    assert (written.rows, written.problems, written.earlier) == (40, 8, 0)
    assert there.read_bytes() == here.read_bytes()
    told = [step.what for step in steps]
    assert any(each.startswith("40 of 40 texts, ") and each.endswith("; 1 worker") for each in told)
    again = attlas.explain_to(subject, TEXTS, there, "raw_attention", engine=ONE)
    assert again.earlier == 40


@pytest.mark.slow
def test_workers_go_on_where_one_process_was_stopped_and_the_other_way_round(
    subject, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(writing_scores, "CHUNK", 8)
    whole = tmp_path / "whole.parquet"
    attlas.explain_to(subject, TEXTS, whole, "raw_attention")

    def stop(step):
        if step.done >= 16:
            raise KeyboardInterrupt

    for first, then in (("local", ONE), (ONE, "local")):
        out = tmp_path / f"{getattr(then, 'name', then)}.parquet"
        with pytest.raises(KeyboardInterrupt):
            attlas.explain_to(subject, TEXTS, out, "raw_attention", engine=first, watch=stop)
        written = attlas.explain_to(subject, TEXTS, out, "raw_attention", engine=then)
        assert written.earlier >= 16
        assert out.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_texts_that_fail_are_problems_or_an_error_as_in_one_process(
    subject, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr(writing_scores, "CHUNK", 4)
    texts = ["zap is the word"] * 4 + ["a plain film"] * 12
    asked = {"target": "no such label"}
    for number, how in enumerate(({}, {"engine": ONE})):
        with pytest.raises(attlas.AttlasError, match="no such label"):
            attlas.explain_to(subject, texts, tmp_path / f"{number}.parquet", **asked, **how)


@pytest.mark.slow
def test_a_model_in_memory_travels_to_workers(cluster, tmp_path):
    subject = attlas.load("shortcut_token")
    subject.model.classifier.weight.data *= 0.5
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    attlas.explain_to(subject, TEXTS, here, "attn_lrp")
    attlas.explain_to(subject, TEXTS, there, "attn_lrp", engine=ONE)
    assert there.read_bytes() == here.read_bytes()


@pytest.mark.slow
def test_head_importance_is_that_of_one_process(subject, cluster, tmp_path):
    data = [("zap is the word", 1), ("a plain film", 0), ("the word is zap", 1)] * 20
    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    one = attlas.head_importance(subject, data, "taylor", out=here)
    other = attlas.head_importance(
        subject, data, "taylor", out=there, engine=attlas.Engine("ray", workers=2)
    )
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert here.read_bytes() == there.read_bytes()
    assert json.dumps(attlas.head_importance(subject, data, "taylor").to_dict()) == json.dumps(
        one.to_dict()
    )


@pytest.mark.slow
def test_an_audit_is_that_of_one_process(cluster, tmp_path):
    subject = attlas.load("sentiment")
    asked = {"quick": True, "count": 12, "methods": ["raw_attention", "gradient"]}
    asked |= {"measures": ["location", "sensitivity"], "trials": ["uniform"]}
    asked |= {"texts_for_slowest": 2}
    one = attlas.audit(subject, "reviews", out=tmp_path / "here", **asked)
    two = attlas.Engine("ray", workers=2)
    other = attlas.audit(subject, "reviews", out=tmp_path / "there", engine=two, **asked)
    assert without_times(one) == without_times(other)
    assert not list((tmp_path / "there" / "parts").iterdir())


@pytest.mark.slow
def test_a_study_is_that_of_one_process(cluster, tmp_path):
    def told(result):
        return json.dumps({**result.to_dict(), "seconds": 0})

    asked = {"quick": True, "seeds": 2}
    one = attlas.study("poster", **asked)
    two = attlas.Engine("ray", workers=2)
    assert told(one) == told(attlas.study("poster", engine=two, out=tmp_path, **asked))
    assert len(list((tmp_path / "parts").glob("*.json"))) == 2


def test_the_file_of_a_cluster_on_the_page_is_one_that_ray_takes():
    from ray.autoscaler._private.util import prepare_config, validate_config

    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    config = prepare_config(yaml.safe_load(text))
    validate_config(config)
    with pytest.raises(Exception, match="no_such_key"):
        validate_config({**config, "no_such_key": 1})
