"""Effective attention against projections of the attention and values that transformers computed.

The values are those of BERT's and GPT-2's own projections, caught by hooks; the projection is by
the pseudo-inverse of what a row may see.
"""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, attention_of, plain, small, subject
from tiny import LLAMA_SHAPE

import attlas
from attlas.auditing.plan import plan_audit
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import explain_batch
from attlas.errors import UsageError
from attlas.methods.effective_attention import effective_attention

LONG = "the film was not good and my dog was not kind and a cat sat on it all the day"
HEADS = 4


@torch.no_grad()
def caught(task, text):
    """Of each layer the attention `[head, query, key]`, and the values `[head, key, width]`."""
    model, kept = plain(task), []
    bert = task != "causal lm"
    layers = model.bert.encoder.layer if bert else model.transformer.h

    def keep(_module, _arguments, output):
        own = output if bert else output.chunk(3, dim=-1)[2]
        kept.append(own[0].unflatten(-1, (HEADS, -1)).transpose(0, 1))

    parts = [layer.attention.self.value if bert else layer.attn.c_attn for layer in layers]
    handles = [part.register_forward_hook(keep) for part in parts]
    attention = attention_of(model(**arguments(task, text), output_attentions=True))["only"]
    for handle in handles:
        handle.remove()
    return [(each[0], values) for each, values in zip(attention, kept, strict=True)]


def projected(weights, values, causal, constant=False):
    found = torch.zeros_like(weights, dtype=torch.float64)
    for head in range(len(weights)):
        for row in range(weights.shape[1]):
            stop = row + 1 if causal else weights.shape[2]
            seen = values[head, :stop].double()
            if constant:
                seen = torch.cat([seen, torch.ones(stop, 1).double()], dim=1)
            mine = weights[head, row, :stop].double()
            found[head, row, :stop] = mine @ seen @ torch.linalg.pinv(seen, rtol=1e-5)
    return found


@pytest.mark.parametrize("keep_sums", [False, True])
@pytest.mark.parametrize("task", ["sequence classification", "causal lm"])
def test_is_the_projection(task, keep_sums):
    layers = caught(task, LONG)
    causal = task == "causal lm"
    found = attlas.explain(subject(task), LONG, "effective_attention", keep_sums=keep_sums)
    for (_, weights), (attention, values) in zip(found.maps, layers, strict=True):
        expected = projected(attention, values, causal, keep_sums)
        np.testing.assert_allclose(weights, expected.numpy(), atol=2e-6)
        assert np.abs(weights - attention.numpy()).max() > 0.01
        mixed = torch.from_numpy(weights) @ values
        torch.testing.assert_close(mixed, attention @ values, atol=1e-5, rtol=1e-5)
    last = found.maps.weights[-1].mean(0)[-1 if causal else 0]
    np.testing.assert_allclose(found.scores, last, atol=1e-6)
    if keep_sums:
        assert found.scores.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("task", ["causal lm", "question answering", "sequence to sequence"])
def test_scores_are_the_same_without_maps(task):
    question = ask(task)
    with_maps, without = (
        effective_attention(replace(question, maps=maps), layer=None) for maps in (True, False)
    )
    assert with_maps.maps and not without.maps
    torch.testing.assert_close(with_maps.scores, without.scores, atol=1e-6, rtol=1e-5)
    assert with_maps.row_notes == without.row_notes


def test_a_short_text_keeps_its_attention():
    for layer in (0, -1, None):
        found, raw = (
            attlas.explain(subject("causal lm"), "a cat", name, layer=layer)
            for name in ("effective_attention", "raw_attention")
        )
        assert len(found.tokens) <= 8
        np.testing.assert_allclose(found.scores, raw.scores, atol=1e-6)


def test_layer_and_fusion():
    task = "sequence classification"
    maps = [projected(a, v, causal=False) for a, v in caught(task, LONG)]
    for layer, fusion, expected in [
        (0, "mean", maps[0].mean(0)[0]),
        (-1, "max", maps[-1].amax(0)[0]),
        (None, "min", (maps[0].amin(0)[0] + maps[1].amin(0)[0]) / 2),
    ]:
        found = attlas.explain(
            subject(task), LONG, "effective_attention", layer=layer, fusion=fusion
        )
        np.testing.assert_allclose(found.scores, expected.numpy(), atol=2e-6)
    with pytest.raises(UsageError, match="unknown layer 2"):
        attlas.explain(subject(task), LONG, "effective_attention", layer=2)


def test_says_rank_and_nullity():
    found = attlas.explain(subject("sequence classification"), LONG, "effective_attention")
    keys = len(found.tokens)
    assert found.notes == (
        f"layer 1: the values of {keys} keys have rank 8, nullity {keys - 8} "
        f"({keys - 9} with sums kept)",
    )


def test_says_what_float64_would_count():
    """Values that are really of rank three have more by the precision of float64."""
    asked = subject("sequence classification")
    thin = deepcopy(asked.model)
    with torch.no_grad():
        for layer in thin.bert.encoder.layer:
            for rows in layer.attention.self.value.weight.split(8):
                rows[3:] = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)) @ rows[:3]
            layer.attention.self.value.bias.zero_()
    found = attlas.explain(attlas.Subject(thin, asked.tokenizer), LONG, "effective_attention")
    keys = len(found.tokens)
    assert f"rank 3, nullity {keys - 3} ({keys - 4} with sums kept); by the" in found.notes[0]
    assert f"precision of float64, nullity {keys - 8} ({keys - 9})" in found.notes[0]


def test_grouped_heads_share_their_values():
    llama = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    found = attlas.explain(llama, LONG, "effective_attention", layer=0).maps.weights[0]
    raw = attlas.explain(llama, LONG, "raw_attention").maps.weights[0]
    attention = llama.model.model.layers[0].self_attn
    kept = []
    handle = attention.v_proj.register_forward_hook(lambda *call: kept.append(call[2]))
    with torch.no_grad():
        llama.model(torch.tensor([llama.tokenizer(LONG)["input_ids"]]))
    handle.remove()
    values = kept[0][0].unflatten(-1, (2, -1)).transpose(0, 1)[[0, 0, 1, 1]]
    expected = projected(torch.from_numpy(raw), values, causal=True)
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-6)


def test_cross_attention_reads_the_sources_values():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][0]
    found = attlas.explain(subject(task), text, "effective_attention", **ASKED[task])
    raw = attlas.explain(subject(task), text, "raw_attention", **ASKED[task])
    model, kept = plain(task), []
    last = model.decoder.block[-1].layer[1].EncDecAttention.v
    handle = last.register_forward_hook(lambda *call: kept.append(call[2]))
    with torch.no_grad():
        model(**arguments(task, text, ASKED[task]["prefix"]))
    handle.remove()
    values = kept[0][0].unflatten(-1, (HEADS, -1)).transpose(0, 1)
    expected = projected(torch.from_numpy(raw.maps.weights[-1]), values, causal=False)
    np.testing.assert_allclose(found.maps.weights[-1], expected.numpy(), atol=2e-6)


def test_a_family_that_mixes_by_itself_has_its_values_read():
    sizes = {"hidden_size": 32, "num_attention_heads": HEADS, "intermediate_size": 64}
    head = "ForSequenceClassification"
    mpnet = small("MPNet", head, **sizes, num_hidden_layers=1, max_position_embeddings=64)
    raw = attlas.explain(mpnet, LONG, "raw_attention")
    found = attlas.explain(mpnet, LONG, "effective_attention")
    (question,) = mpnet.ask([LONG])
    kept = []
    value = mpnet.model.mpnet.encoder.layer[0].attention.attn.v
    handle = value.register_forward_hook(lambda *call: kept.append(call[2]))
    with torch.no_grad():
        mpnet.model(**question.inputs.arguments)
    handle.remove()
    values = kept[0][0].unflatten(-1, (HEADS, -1)).transpose(0, 1)
    expected = projected(torch.from_numpy(raw.maps.weights[0]), values, causal=False)
    np.testing.assert_allclose(found.maps.weights[0], expected.numpy(), atol=2e-6)
    assert np.abs(found.maps.weights[0] - raw.maps.weights[0]).max() > 1e-3


def test_the_notes_of_a_written_token_are_about_what_it_sees():
    asked = subject("causal lm")
    found = attlas.explain_generation(asked, LONG, "effective_attention", max_new_tokens=4)
    for row, place in enumerate(found.outputs):
        (note,) = [each for each in found.row(row).notes if "keys have rank" in each]
        assert f"the values of {place} keys have rank {min(place, 8)}" in note


def test_no_page_says_that_its_sign_is_for_or_against():
    text = TEXTS["sequence classification"][0]
    found = attlas.explain(
        subject("sequence classification"), text, "effective_attention", maps=True
    )
    assert found.origin.signed and found.maps.signed  # some may be below zero
    shown = found.payload()
    assert not shown["signed"] and not shown["maps"]["signed"]
    other = attlas.explain(
        subject("sequence classification"), text, "gradient_attention", maps=True
    )
    assert other.payload()["signed"] and other.payload()["maps"]["signed"]
    rows = attlas.compare([found, other]).payload()["rows"]
    assert [row["signed"] for row in rows] == [False, True]
    assert attlas.Explanation.from_dict(found.to_dict()).payload()["signed"] is False


def test_direction_takes_it_for_weights_without_a_sign():
    asked, text = subject("sequence classification"), TEXTS["sequence classification"][0]
    found = attlas.explain(asked, text, "effective_attention", keep_sums=True)
    turned = replace(found, scores=-found.scores)
    judged = [
        attlas.judge(asked, each, "direction", removal="delete", shuffles=0)
        for each in (found, turned)
    ]
    assert judged[0][0].value == judged[1][0].value  # by size alone: a sign would turn it around
    plan = plan_audit(
        asked,
        TEXTS["sequence classification"][:2],
        ["effective_attention", "gradient_attention"],
        [],
        [],
    )
    cases = explain_batch(plan, [0], Drafts()).texts[0].cases
    assert not cases["effective_attention"].signed and cases["gradient_attention"].signed


@pytest.mark.parametrize("maps", [False, True])
def test_the_model_runs_once(maps):
    asked, runs = subject("causal lm"), []
    attlas.explain(asked, LONG, "effective_attention", maps=maps)  # what it is like is known now
    handle = asked.model.register_forward_hook(lambda *call: runs.append(1))
    attlas.explain(asked, LONG, "effective_attention", maps=maps)
    handle.remove()
    assert len(runs) == 1
