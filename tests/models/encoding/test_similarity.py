"""The similarity of two texts to an encoder without a head."""

import json

import numpy as np
import pytest
import tiny
import torch

import attlas
from attlas.errors import UnsupportedModelError, UsageError

PAIR = ("the dog sat on the mat", "a cat was on the table")


@pytest.fixture(scope="module")
def parts():
    model, words = tiny.subject_parts("sequence classification")
    return model.bert, words


def vector(parts, ids, pooling="mean"):
    with torch.no_grad():
        states = parts[0](torch.tensor([ids])).last_hidden_state[0]
    return {"mean": states.mean(dim=0), "cls": states[0], "last": states[-1]}[pooling]


def cosine(parts, first, second, pooling="mean"):
    vectors = [vector(parts, ids, pooling) for ids in (first, second)]
    return float(torch.nn.functional.cosine_similarity(*vectors, dim=0))


def ids_of(parts, text):
    return parts[1](text)["input_ids"]


def test_a_pair_is_explained_by_its_cosine(parts):
    headless = attlas.Subject(*parts)
    found = attlas.explain(headless, PAIR, "input_x_gradient")
    expected = cosine(parts, *(ids_of(parts, each) for each in PAIR))
    assert (found.target.name, found.target.quantity) == ("similarity", "value")
    assert found.target.value == pytest.approx(expected, abs=1e-6)
    assert found.tokens.sources == {"text": PAIR[0]}
    assert PAIR[1] in found.notes[0]
    both = attlas.explain(headless, [PAIR, PAIR[::-1]], "raw_attention")
    assert both[1].tokens.sources == {"text": PAIR[1]}
    assert both[1].target.value == pytest.approx(expected, abs=1e-6)


def test_leaving_a_token_out_changes_the_first_text_only(parts):
    found = attlas.explain(attlas.Subject(*parts), PAIR, "leave_one_out")
    first, second = (ids_of(parts, each) for each in PAIR)
    for place in range(1, len(first) - 1):
        rest = first[:place] + first[place + 1 :]
        fall = cosine(parts, first, second) - cosine(parts, rest, second)
        assert found.scores[place] == pytest.approx(fall, abs=1e-5)


def test_many_variants_in_one_pass(parts):
    """The attribution of attention adds up to what the similarity gains over no attention."""
    subject = attlas.Subject(*parts, task="similarity")
    found = attlas.explain(subject, PAIR, "attattr")
    assert np.isfinite(found.scores).all() and found.scores.any()
    table = subject.predict([PAIR, PAIR[::-1]])
    assert table["probability"].iloc[0] == pytest.approx(table["probability"].iloc[1], abs=1e-6)


def sentence_folder(parts, place, pooling, *more):
    for each in parts:
        each.save_pretrained(place)
    kinds = ["Transformer", "Pooling", *more]
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in kinds]
    (place / "modules.json").write_text(json.dumps(modules))
    (place / "1_Pooling").mkdir()
    settings = {"word_embedding_dimension": 8, f"pooling_mode_{pooling}": True}
    (place / "1_Pooling" / "config.json").write_text(json.dumps(settings))
    return place


@pytest.mark.parametrize(
    ("pooling", "short"), [("mean_tokens", "mean"), ("cls_token", "cls"), ("lasttoken", "last")]
)
def test_a_folder_says_how_its_vectors_are_pooled(parts, tmp_path, pooling, short):
    subject = attlas.load(sentence_folder(parts, tmp_path, pooling, "Normalize"))
    assert subject.compares
    expected = cosine(parts, *(ids_of(parts, each) for each in PAIR), short)
    assert subject.predict(PAIR)["probability"].item() == pytest.approx(expected, abs=1e-5)


def test_a_hub_id_is_known_by_its_files(parts, tmp_path, monkeypatch):
    """Also how its vectors are pooled, which the mean would misread."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    stored, commit = tmp_path / "models--some--sentences", "0" * 40
    (stored / "refs").mkdir(parents=True)
    (stored / "refs" / "main").write_text(commit)
    sentence_folder(parts, stored / "snapshots" / commit, "cls_token")
    subject = attlas.load("some/sentences")
    assert subject.compares and subject.pooling == "cls_token"


def test_an_older_folder_of_sentences_is_known_by_its_settings(parts, tmp_path):
    for each in parts:
        each.save_pretrained(tmp_path)
    assert not attlas.load(tmp_path).compares
    (tmp_path / "sentence_bert_config.json").write_text("{}")
    assert attlas.load(tmp_path).pooling == "mean_tokens"


def test_what_cannot_be_compared(parts, tmp_path):
    dense = attlas.load(sentence_folder(parts, tmp_path / "dense", "mean_tokens", "Dense"))
    with pytest.raises(UnsupportedModelError, match="adds a Dense to its encoder"):
        dense.predict(PAIR)
    most = attlas.load(sentence_folder(parts, tmp_path / "max", "max_tokens"))
    with pytest.raises(UnsupportedModelError, match="makes one vector by max_tokens"):
        most.predict(PAIR)
    with pytest.raises(UsageError, match="compares two texts: give a pair"):
        attlas.Subject(*parts, task="similarity").predict("the dog")
    with pytest.raises(UsageError, match="task='similarity'"):
        attlas.explain(attlas.Subject(*parts), "the dog")
    assert len(attlas.Subject(*parts, task="similarity").attention("the dog").sites) > 0
