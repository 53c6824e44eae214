"""Generic relevance against the published rules on transformers' own maps and plain autograd."""

from dataclasses import replace

import pytest
import torch
from subjects import (
    ASKED,
    TEXTS,
    arguments,
    ask,
    attention_of,
    on_eager,
    plain,
    small,
    subject,
)
from tiny import BART_SHAPE, FUNNEL_SHAPE, LABELS, LLAMA_SHAPE, labels, text_subject

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.generic_relevance import generic_relevance, layers_from
from attlas.models.asking.reading import attention_gradients, find_readout
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.results import Site

METHOD = "generic_relevance"
TASK = "sequence classification"
ROWS = {
    **{task: 0 for task in (TASK, "next sentence", "image classification", "regression")},
    "causal lm": -1,
}


def fused(output, score):
    """Of each kind, the mean over heads of what is above zero in attention × gradient."""
    found = attention_of(output)
    flat = [each for maps in found.values() for each in maps]
    gradients = iter(torch.autograd.grad(score, flat, allow_unused=True))
    pairs = {kind: [(each, next(gradients)) for each in maps] for kind, maps in found.items()}
    return {
        kind: [
            torch.zeros_like(a[0, 0]) if g is None else (a * g)[0].detach().clamp(min=0).mean(0)
            for a, g in maps
        ]
        for kind, maps in pairs.items()
    }


def follow(layers):
    own = torch.eye(layers[0].shape[-1])
    for layer in layers:
        own = own + layer @ own
    return own


def normalised(own):
    gained = own - torch.eye(len(own))
    share = gained / gained.sum(1, keepdim=True)
    share[gained.sum(1) == 0] = 0
    return share + torch.eye(len(own))


def follow_both(found):
    """R_qi and R_qq of an encoder–decoder, line by line as published for DETR."""
    source = follow(found["encoder"]) if found["encoder"] else torch.eye(found["cross"][0].shape[1])
    own = torch.eye(found["decoder"][0].shape[-1])
    to_source = torch.zeros(len(own), len(source))
    for layer, cross in zip(found["decoder"], found["cross"], strict=True):
        own, to_source = own + layer @ own, to_source + layer @ to_source
        to_source = to_source + normalised(own).T @ cross @ normalised(source)
    return to_source, own


def best_logit(output):
    return output.logits.flatten(0, -2)[-1].max()


def scores(asked, text, **options):
    return torch.from_numpy(attlas.explain(asked, text, METHOD, **options).scores)


def check(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("task", ROWS)
def test_one_stream(task):
    for text in TEXTS[task]:
        output = plain(task)(**arguments(task, text), output_attentions=True)
        relevance = follow(fused(output, best_logit(output))["only"])
        check(scores(subject(task), text), (relevance - torch.eye(len(relevance)))[ROWS[task]])
        found = attlas.explain(subject(task), text, METHOD).maps["all"][0]
        check(torch.from_numpy(found), relevance)


def test_llama():
    given = "the cat sat"
    llama = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    copy, tokenizer = text_subject("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    output = on_eager(copy)(**tokenizer(given, return_tensors="pt"), output_attentions=True)
    relevance = follow(fused(output, best_logit(output))["only"])
    check(scores(llama, given), (relevance - torch.eye(len(relevance)))[-1])


@pytest.mark.parametrize(("start", "left"), [(0, 2), (1, 1), (-1, 1), (-2, 2)])
def test_layers_below_the_start_are_left_out(start, left):
    output = plain(TASK)(**arguments(TASK, TEXTS[TASK][0]), output_attentions=True)
    layers = fused(output, output.logits[0, 2])["only"]
    relevance = follow(layers[len(layers) - left :])
    expected = (relevance - torch.eye(len(relevance)))[0]
    check(scores(subject(TASK), TEXTS[TASK][0], target=2, start_layer=start), expected)


def test_the_start_is_counted_in_each_kind():
    sites = [Site("encoder", i, 1) for i in range(3)] + [Site("cross", i, 1) for i in range(2)]
    assert [site.name for site in layers_from(sites, 1)] == ["encoder.1", "encoder.2", "cross.1"]
    assert [site.name for site in layers_from(sites, -1)] == ["encoder.2", "cross.1"]
    assert [site.name for site in layers_from(sites, 2)] == ["encoder.2"]
    assert layers_from(sites, -3) == sites


def test_unknown_layer():
    with pytest.raises(UsageError, match="unknown layer 7: this model has layers 0 to 1"):
        scores(subject(TASK), "a cat", start_layer=7)


def test_a_pooled_prediction_is_read_by_its_shares():
    question = subject("question answering").ask(TEXTS["question answering"][:1], Request())[0]
    found = generic_relevance(question)
    readout = find_readout(question)[0]
    assert (readout > 0).sum() > 1
    relevance = found.maps[0][1][0, 0]
    check(found.scores[0], readout @ (relevance - torch.eye(len(relevance))))


def test_an_encoder_decoder_has_scores_for_source_and_prefix():
    task, prefix = "sequence to sequence", ASKED["sequence to sequence"]["prefix"]
    text = TEXTS[task][0]
    output = plain(task)(**arguments(task, text, prefix), output_attentions=True)
    to_source, own = follow_both(fused(output, best_logit(output)))
    expected = torch.cat([to_source[-1], (own - torch.eye(len(own)))[-1]])
    check(scores(subject(task), text, prefix=prefix), expected)
    found = attlas.explain(subject(task), text, METHOD, prefix=prefix).maps["all"][0]
    check(torch.from_numpy(found), torch.cat([to_source, own], dim=1))


def test_bart():
    parts = text_subject("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE)
    copy, tokenizer = text_subject("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE)
    given = dict(tokenizer("The cat sat", return_tensors="pt"))
    start = torch.tensor([[copy.config.decoder_start_token_id]])
    output = on_eager(copy)(**given, decoder_input_ids=start, output_attentions=True)
    to_source, own = follow_both(fused(output, best_logit(output)))
    expected = torch.cat([to_source[-1], (own - torch.eye(len(own)))[-1]])
    check(scores(attlas.Subject(*parts), "The cat sat", prefix=""), expected)


def test_a_decoder_that_reads_a_copy_of_the_source():
    """BART's classifier hands its decoder the text, one place late, behind its start token."""
    settings = {**BART_SHAPE, **labels(*LABELS)}
    bart = small("Bart", "ForSequenceClassification", "word_level", **settings)
    copy, tokenizer = text_subject("Bart", "ForSequenceClassification", "word_level", **settings)
    given = tokenizer("the cat sat", return_tensors="pt")
    output = on_eager(copy)(**given, output_attentions=True, use_cache=False)
    to_source, own = follow_both(fused(output, output.logits[0, 1]))
    row, copied = to_source[-1], (own - torch.eye(len(own)))[-1]  # read at the last </s>
    size = len(row)
    expected = [row[i] + copied[(i + 1) % size] for i in range(size)]  # token i stands at i + 1
    check(scores(bart, "the cat sat", target=1), torch.stack(expected))


def test_an_encoder_without_attention():
    asked = attlas.load("dates_plain")
    text = "3 march 2019"
    found = attlas.explain(asked, text, METHOD, prefix="")
    (question,) = asked.ask([text], Request(prefix=""))
    maps = {"encoder": [], "decoder": [], "cross": []}
    for call, gradient in attention_gradients(question, "logit"):
        maps[call.site.kind].append((call.weights * gradient)[0].clamp(min=0).mean(0))
    to_source, own = follow_both(maps)
    expected = torch.cat([to_source[-1], (own - torch.eye(len(own)))[-1]])
    check(torch.from_numpy(found.scores), expected)
    assert found.scores.max() > 0


def test_a_contrast_is_the_gradient_of_the_difference():
    output = plain(TASK)(**arguments(TASK, TEXTS[TASK][0]), output_attentions=True)
    relevance = follow(fused(output, output.logits[0, 2] - output.logits[0, 0])["only"])
    expected = (relevance - torch.eye(len(relevance)))[0]
    found = scores(subject(TASK), TEXTS[TASK][0], target="positive", contrast="negative")
    check(found, expected)


def test_maps_are_made_only_if_asked_for():
    question = ask(TASK)
    assert not generic_relevance(replace(question, maps=False)).maps
    (site, weights), *more = generic_relevance(question).maps
    assert site == Site("all", 0, 1) and not more
    assert weights.shape == (1, 1, *[len(question.inputs.tokens[0])] * 2)


def test_parts_of_a_batch_are_put_together(monkeypatch):
    texts = ["a cat sat", "my dog was"]
    (question,) = subject(TASK).ask(texts, Request(target=0))
    expected = generic_relevance(question)
    monkeypatch.setattr(type(question.subject), "rows_holding", lambda *_: 1)
    found = generic_relevance(question)
    check(found.scores, expected.scores)
    check(found.maps[0][1], expected.maps[0][1])


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_several_targets_of_one_input_get_what_each_gets_alone(task):
    question = ask(task)
    targets = (Target("one", ((-1, 7),)), Target("other", ((-2, 9),)))

    together = generic_relevance(question.asking(targets))
    for row, target in enumerate(targets):
        alone = generic_relevance(question.asking([target]))
        check(together.scores[row], alone.scores[0])
        check(together.maps[0][1][row], alone.maps[0][1][0])
    assert (together.scores[0] - together.scores[1]).abs().max() > 1e-3


def test_layers_that_pool_are_refused():
    settings = {**FUNNEL_SHAPE, **labels(*LABELS)}
    funnel = small("Funnel", "ForSequenceClassification", **settings)
    with pytest.raises(UnsupportedModelError, match=r"an attention is over .* positions, not the"):
        scores(funnel, "the film was not good and not bad")
