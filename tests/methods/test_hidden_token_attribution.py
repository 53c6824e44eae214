"""Hidden token attribution against torch's own Jacobian of the plain model."""

import numpy as np
import pytest
import torch
from subjects import TEXTS, arguments, ask, plain, small, subject
from tiny import (
    BART_SHAPE,
    BERT_SHAPE,
    FUNNEL_SHAPE,
    LABELS,
    MODERNBERT,
    labels,
    subject_parts,
)

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.hidden_token_attribution import hidden_token_attribution
from attlas.models.asking.reading import find_readout

TASK = "sequence classification"


def scores(task, text, **options):
    found = attlas.explain(subject(task), text, "hidden_token_attribution", **options)
    return torch.from_numpy(found.scores)


def shares(jacobian):
    """A Jacobian `[feature, token, feature]` as a share for each token."""
    norms = jacobian.square().sum((0, 2)).sqrt()
    return norms / norms.sum()


@pytest.mark.parametrize(("layer", "hidden"), [(-1, 2), (0, 1), (1, 2), (-2, 1)])
def test_bert(layer, hidden):
    for text in TEXTS[TASK][:2]:
        ids = arguments(TASK, text)["input_ids"]
        vectors = plain(TASK).bert.embeddings.word_embeddings(ids)[0].detach()

        def state(each, hidden=hidden):
            output = plain(TASK)(inputs_embeds=each[None], output_hidden_states=True)
            return output.hidden_states[hidden][0, 0]

        expected = shares(torch.autograd.functional.jacobian(state, vectors))
        found = scores(TASK, text, layer=layer)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
        assert found.sum().item() == pytest.approx(1)


def test_a_causal_model_is_read_at_its_last_position():
    task, text = "causal lm", TEXTS["causal lm"][0]
    model, kept = plain(task), []
    handle = model.transformer.h[-1].register_forward_hook(lambda _m, _g, out: kept.append(out))
    vectors = model.transformer.wte(arguments(task, text)["input_ids"])[0].detach()

    def state(each):
        model(inputs_embeds=each[None])
        return kept.pop()[0, -1]

    expected = shares(torch.autograd.functional.jacobian(state, vectors))
    handle.remove()
    torch.testing.assert_close(scores(task, text), expected, atol=1e-5, rtol=1e-4)


def test_an_encoder_decoder_has_source_and_prefix():
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][0]
    model, given = plain(task), arguments(task, TEXTS["sequence to sequence"][0], prefix="Das Haus")
    kept = []
    handle = model.decoder.block[-1].register_forward_hook(lambda _m, _g, out: kept.append(out[0]))
    names = ("input_ids", "decoder_input_ids")
    vectors = tuple(model.shared(given[name])[0].detach() for name in names)

    def state(source, prefix):
        model(inputs_embeds=source[None], decoder_inputs_embeds=prefix[None])
        return kept.pop()[0, -1]

    both = torch.autograd.functional.jacobian(state, vectors)
    handle.remove()
    found = scores(task, text, prefix="Das Haus")
    torch.testing.assert_close(found, shares(torch.cat(both, dim=1)), atol=1e-5, rtol=1e-4)


def test_patches_have_all_of_it_and_the_class_token_none():
    found = scores("image classification", TEXTS["image classification"][0])
    assert found[0] == 0 and (found[1:] > 0).all()
    assert found.sum().item() == pytest.approx(1)


def test_a_pooled_model_is_read_at_the_sum_of_its_states_by_their_shares():
    settings = {**BERT_SHAPE, **MODERNBERT, **labels(*LABELS), "classifier_pooling": "mean"}
    asked = small("ModernBert", "ForSequenceClassification", **settings)
    (question,) = asked.ask(["The cat sat on"])
    (readout,), kept = find_readout(question), []
    assert (readout > 0).all()
    handle = asked.model.model.layers[-1].register_forward_hook(lambda _m, _g, o: kept.append(o))
    ids = question.inputs.arguments["input_ids"]
    vectors = asked.model.model.embeddings.tok_embeddings(ids)[0].detach()

    def state(each):
        asked.model(inputs_embeds=each[None])
        return readout @ kept.pop()[0]

    expected = shares(torch.autograd.functional.jacobian(state, vectors))
    handle.remove()
    (found,) = hidden_token_attribution(question).scores
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def silence(model):
    """Let no attention through."""
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.zero_()


@pytest.mark.parametrize("layer", [0, 1])
def test_without_attention_each_state_is_its_own_token(layer):
    model, tokenizer = subject_parts("masked lm")
    silence(model)
    text = TEXTS["masked lm"][0]
    found = attlas.explain(
        attlas.Subject(model, tokenizer), text, "hidden_token_attribution", layer=layer
    )
    assert found.scores.tolist() == [float(token == "[MASK]") for token in found.tokens]


def test_probes_come_near_and_are_seeded():
    exact = scores(TASK, TEXTS[TASK][0])
    few, again, other, many = (
        scores(TASK, TEXTS[TASK][0], probes=probes, seed=seed)
        for probes, seed in ((4, 0), (4, 0), (4, 1), (3000, 0))
    )
    assert torch.equal(few, again) and not torch.equal(few, other)
    assert (many - exact).abs().max() < 0.02 * exact.max()
    assert (few - exact).abs().max() < 0.5 * exact.max()


def test_parts_add_up_to_the_whole(monkeypatch):
    expected = hidden_token_attribution(ask(TASK)).scores
    monkeypatch.setattr("attlas.models.asking.memory._TOKENS", {"cpu": 30})
    np.testing.assert_allclose(hidden_token_attribution(ask(TASK)).scores, expected, rtol=1e-4)


def test_a_classifying_encoder_decoder():
    bart = small("Bart", "ForSequenceClassification", "word_level", **BART_SHAPE, **labels(*LABELS))
    found = attlas.explain(bart, "The cat sat on", "hidden_token_attribution")
    assert found.scores.sum() == pytest.approx(1) and (found.scores > 0).all()


def test_wrong_options_are_named():
    with pytest.raises(UsageError, match="unknown layer 2: this model has layers 0 to 1"):
        scores(TASK, "a cat", layer=2)
    with pytest.raises(UsageError, match=r"probes of .* must be at least 1, not 0"):
        scores(TASK, "a cat", probes=0)


def test_layers_of_other_lengths_are_refused():
    funnel = small(
        "Funnel", "ForSequenceClassification", "wordpiece", **FUNNEL_SHAPE, **labels(*LABELS)
    )
    assert attlas.explain(funnel, "a cat sat", "hidden_token_attribution").scores.sum() > 0.99
    with pytest.raises(UnsupportedModelError, match="so they cannot be matched"):
        attlas.explain(funnel, "a cat sat", "hidden_token_attribution", layer=0)
