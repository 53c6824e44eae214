"""Raw attention against the maps that transformers itself returns on eager attention."""

import pytest
import torch
from subjects import ASKED, TEXTS, arguments, attention_of, logits, plain, subject

import attlas
from attlas.errors import UnknownNameError, UsageError

ONE_ROW = {
    "sequence classification": 0,
    "multi-label": 0,
    "regression": 0,
    "next sentence": 0,
    "image classification": 0,
    "causal lm": -1,
}
JOIN = {"mean": torch.mean, "max": torch.amax, "min": torch.amin}


@torch.no_grad()
def maps(task, text, prefix=None, extra=()):
    """The attention of each kind, `[layer, head, query, key]`."""
    output = plain(task)(**arguments(task, text, prefix, extra), output_attentions=True)
    return {kind: torch.cat(layers) for kind, layers in attention_of(output).items()}


def scores(task, text, **options):
    return torch.from_numpy(attlas.explain(subject(task), text, "raw_attention", **options).scores)


@pytest.mark.parametrize("task", ONE_ROW)
def test_is_the_row_the_prediction_is_read_from(task):
    for text in TEXTS[task]:
        expected = maps(task, text)["only"][-1].mean(0)[ONE_ROW[task]]
        torch.testing.assert_close(scores(task, text), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("layer", [0, 1, -1, -2, None])
@pytest.mark.parametrize("fusion", JOIN)
def test_layer_and_fusion(layer, fusion):
    task, text = "causal lm", TEXTS["causal lm"][0]
    every = JOIN[fusion](maps(task, text)["only"], dim=1)[:, -1]
    expected = every.mean(0) if layer is None else every[layer]
    found = scores(task, text, layer=layer, fusion=fusion)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_a_masked_token_is_read_at_its_mask():
    task, text = "masked lm", TEXTS["masked lm"][0]
    ids = arguments(task, text)["input_ids"][0]
    row = ids.tolist().index(subject(task).tokenizer.mask_token_id)
    expected = maps(task, text)["only"][-1].mean(0)
    torch.testing.assert_close(scores(task, text), expected[row], atol=1e-6, rtol=1e-5)
    found = scores(task, text, position=2, target=7)
    torch.testing.assert_close(found, expected[2], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("position", [1, 3, -2])
def test_a_tagged_token_is_read_where_it_stands(position):
    task, text = "token classification", TEXTS["token classification"][0]
    expected = maps(task, text)["only"][-1].mean(0)[position]
    found = scores(task, text, position=position)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_an_answer_is_read_at_its_start_and_its_end():
    task = "question answering"
    for text in TEXTS[task]:
        rows = maps(task, text)["only"][-1].mean(0)
        found = attlas.explain(subject(task), text, "raw_attention")
        start, end = spans_by_force(task, text)
        # The head is linear: the gradient of a logit on the hidden states is the head's row.
        heads = plain(task).qa_outputs.weight.detach()
        shares = heads.norm(dim=1) / heads.norm(dim=1).sum()
        expected = rows[start] if start == end else shares @ rows[[start, end]]
        torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-6, rtol=1e-5)


def spans_by_force(task, text):
    encoded = subject(task).tokenizer(*text)
    inside = [i for i, sequence in enumerate(encoded.sequence_ids(0)) if sequence == 1]
    start, end = logits(task, arguments(task, text))
    spans = [(i, j) for i in inside for j in inside if i <= j]
    return max(spans, key=lambda span: float(start[span[0]] + end[span[1]]))


def test_a_string_of_tokens_is_read_before_each_of_them():
    task, text = "causal lm", TEXTS["causal lm"][0]
    found = attlas.explain(subject(task), text, "raw_attention", target=" dog was")
    tokenizer = subject(task).tokenizer
    chain = tuple(tokenizer(" dog was")["input_ids"])
    rows = maps(task, text, extra=chain[:-1])["only"][-1].mean(0)[-len(chain) :]
    norms = gradient_norms(plain(task), arguments(task, text, extra=chain[:-1]), chain)
    expected = (norms / norms.sum()) @ rows
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, atol=1e-5, rtol=1e-4)
    assert len(chain) > 1


def gradient_norms(model, given, chain):
    """Of the sum of log-probabilities on what GPT-2's last block gives, where it is read."""
    kept = []

    def keep(_module, _arguments, output):
        kept.append(output if torch.is_tensor(output) else output[0])
        kept[0].retain_grad()

    handle = model.transformer.h[-1].register_forward_hook(keep)
    output = model(**given).logits[0].log_softmax(-1)
    handle.remove()
    places = range(len(output) - len(chain), len(output))
    total = sum(output[place, token] for place, token in zip(places, chain, strict=True))
    (gradient,) = torch.autograd.grad(total, kept)
    assert not gradient[0, : -len(chain)].any()
    return gradient[0, -len(chain) :].norm(dim=-1)


def test_an_encoder_decoder_has_two_rows():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][0]
    prefix = ASKED[task]["prefix"]
    found = maps(task, text, prefix)
    for layer in (0, -1):
        rows = [found["cross"][layer].mean(0)[-1], found["decoder"][layer].mean(0)[-1]]
        given = scores(task, text, prefix=prefix, layer=layer)
        torch.testing.assert_close(given, torch.cat(rows), atol=1e-6, rtol=1e-5)
        assert float(given.sum()) == pytest.approx(2, abs=1e-5)


def test_maps_are_the_attention_itself():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][1]
    prefix = ASKED[task]["prefix"]
    expected = maps(task, text, prefix)
    found = attlas.explain(subject(task), text, "raw_attention", prefix=prefix).maps
    assert [site.name for site in found.sites] == [
        *("encoder.0", "encoder.1"),
        *("decoder.0", "cross.0", "decoder.1", "cross.1"),
    ]
    for site, weights in found:
        layer = expected[site.kind][site.layer]
        torch.testing.assert_close(torch.from_numpy(weights), layer, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("layer", [2, -3, 99])
def test_unknown_layer(layer):
    with pytest.raises(UsageError, match=rf"unknown layer {layer}: this model has layers 0 to 1"):
        scores("causal lm", "the cat", layer=layer)


def test_unknown_fusion():
    with pytest.raises(UnknownNameError, match="did you mean 'mean'"):
        scores("causal lm", "the cat", fusion="meen")
