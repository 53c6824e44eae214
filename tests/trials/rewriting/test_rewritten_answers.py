"""The mean in place of the attention, against hooks on transformers' own modules."""

import numpy as np
import pytest
import tiny
import torch
from subjects import TEXTS, arguments, plain, small, subject

from attlas.trials import Scope
from attlas.trials.uniform import uniform

TASK = "sequence classification"


def logits(model, given):
    with torch.no_grad():
        return model(**given).logits[0].double().softmax(-1)


def contexts(model, layer, given):
    """What the attention of a layer gives, `[query, feature]`."""
    found = []
    module = model.bert.encoder.layer[layer].attention.self
    handle = module.register_forward_hook(lambda _m, _a, output: found.append(output[0][0]))
    logits(model, given)
    handle.remove()
    return found[0]


@pytest.mark.parametrize("layer", [0, 1])
def test_the_mean_of_all_texts_and_rows_takes_the_place_of_what_attention_gives(layer):
    model = plain(TASK)
    texts = [arguments(TASK, text) for text in TEXTS[TASK]]
    rows = slice(0, 1) if layer == 1 else slice(None)  # only the first row of the last is read
    mean = torch.cat([contexts(model, layer, given)[rows] for given in texts]).mean(0)

    def put(_module, _arguments, output):
        changed = output[0].clone()
        changed[:, rows] = mean
        return changed, *output[1:]

    expected = []
    for given in texts:
        own = logits(model, given)
        module = model.bert.encoder.layer[layer].attention.self
        handle = module.register_forward_hook(put)
        expected.append((logits(model, given) - own).abs().sum().item() / 2)
        handle.remove()
    tried = uniform(subject(TASK).ask(TEXTS[TASK]), Scope("layer"))
    found = tried.figures[f"difference by its mean, layer {layer}"]
    assert np.allclose(found[np.argsort(tried.texts)], expected, atol=1e-5)
    assert min(expected) > 1e-3


def test_without_values_the_attention_is_taken_away():
    asked = small("MPNet", "ForSequenceClassification", **tiny.BERT_SHAPE, **tiny.labels("a", "b"))
    tried = uniform(asked.ask(["the film was not good", "a cat sat"]))
    assert "removing the attention" in tried.notes[0]
    model = asked.model
    attention = model.mpnet.encoder.layer[-1].attention.attn

    def silence(_module, _arguments, output):
        bias = attention.o.bias.expand_as(output[0])
        return torch.cat([bias[:, :1], output[0][:, 1:]], 1), *output[1:]

    given = asked.tokenizer("a cat sat", return_tensors="pt")
    own = logits(model, given)
    handle = attention.register_forward_hook(silence)
    expected = (logits(model, given) - own).abs().sum().item() / 2
    handle.remove()
    found = tried.figures["difference by its mean"][tried.texts.index(1)]
    assert found == pytest.approx(expected, abs=1e-6)
