"""Identifiability against the attention, keys and values that transformers computed."""

import numpy as np
import pytest
import torch
from known_models import ignores_attention
from subjects import TEXTS, arguments, ask, attention_of, on_eager, plain, small, subject
from tiny import BERT_SHAPE, LABELS, LLAMA_SHAPE, SOFT_CAP, labels, subject_parts

from attlas import Subject
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.reading import read_attention
from attlas.models.intervening.keys import read_keys
from attlas.models.tap import softmax_watch
from attlas.models.tap.edits import Edit
from attlas.trials.identifiability import identifiability
from attlas.trials.support.outputs import distributions
from attlas.trials.support.scope import Scope

LONG = "the film was not good and my dog was not kind, and a cat sat on it all the day."
SHORT = "a cat"
TASK, CAUSAL = "sequence classification", "causal lm"
HEADS, WIDTH = 4, 8
WITHOUT_SPECIALS = Scope()


@torch.no_grad()
def caught(model, given, part):
    """Of each layer of a BERT what one of its projections gave, `[head, key, width]`."""
    kept = []
    handles = [
        getattr(layer.attention.self, part).register_forward_hook(
            lambda _module, _given, output: kept.append(
                output[0].unflatten(-1, (HEADS, -1)).transpose(0, 1)
            )
        )
        for layer in model.bert.encoder.layer
    ]
    attention = attention_of(model(**given, output_attentions=True))["only"]
    for handle in handles:
        handle.remove()
    return [(each[0], values) for each, values in zip(attention, kept, strict=True)]


def tried(task, *texts, scope=WITHOUT_SPECIALS, searches=1):
    return identifiability(subject(task).ask(list(texts)), scope, searches=searches)


def test_ranks_and_both_nullities_of_a_long_and_a_short_text():
    found = tried(TASK, LONG, SHORT)
    assert found.texts == (0, 1)
    keys = found.figures["keys"]
    assert keys.tolist() == [len(ask(TASK, text).inputs.tokens[0]) for text in (LONG, SHORT)]
    assert found.figures["rank"].tolist() == [WIDTH, keys[1]]
    assert found.figures["free dimensions"].tolist() == [keys[0] - WIDTH, 0]
    assert found.figures["free dimensions, sum kept"].tolist() == [keys[0] - WIDTH - 1, 0]
    assert found.figures["determined by the output"].tolist() == [0, 1]
    assert found.figures["too long to determine"].tolist() == [1, 0]
    assert found.details["longest identifiable"] == {"encoder.1": WIDTH + 1}
    assert "1 of 2 texts are longer" in found.sentence


def test_rows_of_a_causal_model_are_free_in_what_they_see():
    found = tried(CAUSAL, LONG, scope=Scope("all"))
    length = len(ask(CAUSAL, LONG).inputs.tokens[0])
    seen = np.arange(1, length + 1)
    first, last = np.maximum(seen - WIDTH - 1, 0).mean(), max(length - WIDTH - 1, 0)
    # The rows of the last layer that are not read have no path to the answer.
    expected = (first + last) / 2
    assert found.figures["free dimensions, sum kept"][0] == pytest.approx(expected)
    assert found.figures["keys"][0] == pytest.approx((seen.mean() + length) / 2)


def test_raw_against_effective_attention():
    ((attention, values),) = caught(plain(TASK), arguments(TASK, LONG), "value")[-1:]
    expected = []
    for weights, own in zip(attention[:, 0].double(), values.double(), strict=True):
        effective = weights @ own @ torch.linalg.pinv(own, rtol=1e-5)
        expected.append(np.corrcoef(weights, effective)[0, 1])
    found = tried(TASK, LONG, SHORT).figures["raw with effective"]
    assert found[0] == pytest.approx(np.mean(expected), abs=1e-5)
    assert found[0] < 0.99
    assert found[1] == pytest.approx(1)


def test_where_the_weight_lies():
    ((attention, _),) = caught(plain(TASK), arguments(TASK, LONG), "value")[-1:]
    row = attention[:, 0].mean(0)
    tokens = ask(TASK, LONG).inputs.tokens[0]
    marks = torch.tensor([token in (",", ".") for token in tokens])
    assert marks.sum() == 2
    found = tried(TASK, LONG).figures
    parts = [found[f"raw weight on {kind}"][0] for kind in ("first special", "other special")]
    assert parts == pytest.approx([row[0].item(), row[-1].item()], abs=1e-6)
    assert found["raw weight on punctuation"][0] == pytest.approx(row[marks].sum().item(), abs=1e-6)
    kinds = ("first special", "other special", "punctuation", "content")
    for name in ("raw", "effective"):
        assert sum(found[f"{name} weight on {kind}"][0] for kind in kinds) == pytest.approx(1)


def test_keys_are_those_of_the_model():
    question = ask(TASK, LONG)
    found = read_keys(question, question.subject.sites)
    for layer, (_, keys) in enumerate(caught(plain(TASK), arguments(TASK, LONG), "key")):
        torch.testing.assert_close(found[f"encoder.{layer}"][0], keys, atol=1e-5, rtol=1e-4)


def test_scores_are_made_of_keys_that_have_their_positions():
    model = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    (question,) = model.ask([LONG])
    keys = read_keys(question, model.sites)
    for call in read_attention(question):
        last = call.weights[0, :, -1].double().log()
        given = keys[call.site.name][0].double()
        assert given.shape[0] == HEADS and given.shape[1] > given.shape[2] + 2
        columns = torch.cat([given, torch.ones_like(given[..., :1])], dim=-1)
        projected = columns @ torch.linalg.pinv(columns) @ last[..., None]
        torch.testing.assert_close(projected[..., 0], last, atol=1e-4, rtol=1e-4)


def test_what_a_query_could_have_made():
    found = tried(TASK, LONG, SHORT).figures["determined through the query"]
    ((attention, values),) = caught(plain(TASK), arguments(TASK, LONG), "value")[-1:]
    ((_, keys),) = caught(plain(TASK), arguments(TASK, LONG), "key")[-1:]
    told = []
    for weights, value, key in zip(attention[:, 0], values, keys, strict=True):
        moves = (torch.diag(weights) - torch.outer(weights, weights)).double() @ key.double()
        told.append(torch.linalg.matrix_rank(value.double().T @ moves, rtol=1e-5) == WIDTH)
    assert found.tolist() == [np.mean(told), 1]


def test_a_cap_on_scores_is_no_plain_softmax():
    settings = {**LLAMA_SHAPE, **SOFT_CAP, "head_dim": 8}
    model = small("Gemma2", "ForCausalLM", "bpe", **settings)
    found = identifiability(model.ask([LONG]))
    assert np.isnan(found.figures["determined through the query"]).all()
    assert any("not the softmax" in note for note in found.notes)


def test_values_that_are_not_seen_are_refused(monkeypatch):
    settings = {**BERT_SHAPE, **labels(*LABELS)}
    model = small("MPNet", "ForSequenceClassification", **settings)
    monkeypatch.setattr(softmax_watch, "_mixed_values", lambda *_: None)
    with pytest.raises(UnsupportedModelError, match="values"):
        identifiability(model.ask([LONG]))


def double_subject():
    model, tokenizer = subject_parts(TASK)
    return Subject(on_eager(model.double()), tokenizer)


@pytest.mark.parametrize("specials", [False, True])
def test_another_valid_attention_gives_the_same_output(specials):
    model = double_subject()
    questions = model.ask([SHORT, LONG])
    other = identifiability(questions, Scope(specials=specials)).details["other attention"]
    assert other["text"] == 1 and other["site"] == "encoder.1" and other["row"] == 0
    ((attention, values),) = caught(model.model, dict(questions[1].inputs.arguments), "value")[-1:]
    clean = attention[:, 0].numpy()
    np.testing.assert_allclose(other["weights"], clean, atol=1e-12)
    others = np.array(other["others"])
    assert (others >= 0).all()
    np.testing.assert_allclose(others.sum(1), 1, atol=1e-12)
    mixed = np.einsum("hk,hkw->hw", others, values.numpy())
    np.testing.assert_allclose(mixed, np.einsum("hk,hkw->hw", clean, values.numpy()), atol=1e-6)
    assert np.abs(others - clean).sum(1).min() / 2 > 0.05
    np.testing.assert_allclose(other["distances"], np.abs(others - clean).sum(1) / 2)
    held = np.abs(others - other["weights"])[:, [0, -1]].max()
    assert held > 0.01 if specials else held == 0
    assert other["answer moved"] < 1e-6


def test_the_answer_would_move_with_any_other_attention():
    """What `answer moved` is held to: the same weights in another order change the answer."""
    model = double_subject()
    (question,) = model.ask([LONG])
    backwards = Edit("backwards", lambda weights, _: weights.flip(-1))
    with model.tap(backwards.at(kind="encoder", layer=1, queries=0), sites=()):
        changed = distributions(question)
    assert (changed - distributions(question)).abs().max() > 1e-4


def test_where_all_values_are_equal_all_weight_can_go_anywhere():
    found = identifiability(ignores_attention().ask(["good bad fine good bad"]), Scope())
    other = found.details["other attention"]
    content = np.array(other["weights"])[:, 1:-1]
    np.testing.assert_allclose(other["distances"], content.sum(1) - content.min(1), atol=1e-7)
    assert found.figures["rank"].tolist() == [1]


def test_the_two_are_shown_side_by_side():
    found = tried(TASK, LONG)
    (plot,) = [plot for plot in found.plots if plot["kind"] == "maps"]
    assert len(plot["columns"]) == len(ask(TASK, LONG).inputs.tokens[0])
    assert [len(side["values"]) for side in plot["maps"]] == [HEADS, HEADS]
    assert not [plot for plot in tried(TASK, SHORT).plots if plot["kind"] == "maps"]
    assert "other valid attention" in tried(TASK, SHORT).sentence


def test_encoder_decoders_are_asked_at_their_cross_attention():
    (question,) = [ask("sequence to sequence", TEXTS["sequence to sequence"][0])]
    found = identifiability([question])
    assert list(found.details["longest identifiable"]) == ["cross.1"]
    assert np.isnan(found.figures["conicity of states"]).all()


def test_every_text_in_its_place_and_seeded():
    texts = [LONG, SHORT, LONG.replace("cat", "dog")]
    first, again = (tried(TASK, *texts, searches=2) for _ in range(2))
    assert first.details == again.details
    assert sorted(first.texts) == [0, 1, 2]
    alone = tried(TASK, texts[2]).figures["raw with effective"][0]
    place = first.texts.index(2)
    assert first.figures["raw with effective"][place] == pytest.approx(alone, abs=1e-5)


def test_wrong_use():
    with pytest.raises(UsageError, match="scope token"):
        tried(TASK, SHORT, scope=Scope("token"))
    with pytest.raises(UsageError, match="at least 1, not 0"):
        tried(TASK, SHORT, searches=0)
