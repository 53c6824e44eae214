"""Encoder–decoders with Bahdanau's and Luong's attention, against their definitions."""

import numpy as np
import pytest
import torch
from recurrent_by_hand import both_ways, gru, numbers, softmax

import attlas
from attlas.errors import NotDefinedError, UsageError
from attlas.models.recurrent.fitting import FitPlan
from attlas.models.recurrent.learning import judge_writer, learn_writer
from attlas.models.recurrent.words import END, PAD, START, build_characters
from attlas.models.recurrent.writer import RecurrentForConditionalGeneration, RecurrentWriterConfig

TEXTS = ["3 May 1999", "12.08.2001"]
PREFIX = "19"


def subject_of(attention):
    tokenizer = build_characters(TEXTS)
    torch.manual_seed(0)
    config = RecurrentWriterConfig(
        vocab_size=len(tokenizer),
        vector_size=6,
        hidden_size=8,
        attention=attention,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
    )
    return attlas.Subject(RecurrentForConditionalGeneration(config).eval(), tokenizer)


def by_hand(model, source, written, replaced=None):
    """The logits and the attention, step by step; `replaced` are rows of attention to use."""
    table = model.vectors.weight.detach().double().numpy()
    own = numbers(model.encoder.network)
    states, last = both_ways(gru, table[source], own)
    state = np.tanh(numbers(model.start)["weight"] @ last + numbers(model.start)["bias"])
    seen, rows, found = slice(1, len(source) - 1), [], []
    layer = numbers(model.decoder[0])
    if model.config.attention == "luong":
        run = {k.removeprefix("network."): v for k, v in layer.items() if k.startswith("network.")}
        steps = gru(table[written], run, "", state)
    for place, token in enumerate(written):
        row = np.zeros(len(source))
        if model.config.attention == "luong":
            keys = states @ layer["attention.of_source.weight"].T
            row[seen] = softmax(keys[seen] @ steps[place])
            row = row if replaced is None else replaced[place]
            joined = np.concatenate([row @ states, steps[place]])
            weight, bias = layer["joined.weight"], layer["joined.bias"]
        else:
            names = {k.removeprefix("attention."): v for k, v in layer.items()}
            keys = states @ names["of_source.weight"].T + names["of_source.bias"]
            scores = np.tanh(names["of_state.weight"] @ state + keys) @ names["outer.weight"][0]
            row[seen] = softmax(scores[seen])
            row = row if replaced is None else replaced[place]
            cell = {k.removeprefix("cell."): v for k, v in names.items() if k.startswith("cell.")}
            entered = np.concatenate([table[token], row @ states])
            state = gru([entered], cell, "", state, names="")[0]
            joined = np.concatenate([table[token], state, row @ states])
            weight, bias = names["joined.weight"], names["joined.bias"]
        output = np.tanh(weight @ joined + bias)
        found.append(numbers(model.output)["weight"] @ output + numbers(model.output)["bias"])
        rows.append(row)
    return np.array(found), np.array(rows)


def ids_of(subject, text):
    return subject.tokenizer(text)["input_ids"]


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_it_reads_and_writes_as_defined(attention):
    subject = subject_of(attention)
    source, written = ids_of(subject, TEXTS[0]), [START, *ids_of(subject, PREFIX)[1:-1]]
    logits, rows = by_hand(subject.model, source, written)
    found = subject.model(
        input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([written])
    ).logits[0]
    np.testing.assert_allclose(found.detach(), logits, atol=1e-5)
    maps = subject.attention(TEXTS[0], prefix=PREFIX)
    assert [site.name for site in maps.sites] == ["cross.0"]
    np.testing.assert_allclose(maps.weights[0][0], rows, atol=1e-6)


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_edits_give_the_output_under_that_attention(attention):
    subject = subject_of(attention)
    source, written = ids_of(subject, TEXTS[0]), [START, *ids_of(subject, PREFIX)[1:-1]]
    arguments = {
        "input_ids": torch.tensor([source]),
        "decoder_input_ids": torch.tensor([written]),
    }
    even = np.zeros((len(written), len(source)))
    even[:, 1:-1] = 1 / (len(source) - 2)
    expected, _ = by_hand(subject.model, source, written, replaced=even)
    with torch.no_grad():
        before = subject.model(**arguments).logits
        with subject.tap() as seen:
            assert torch.equal(subject.model(**arguments).logits, before)
        assert len(seen.sites) == 1
        with subject.tap(attlas.edits.uniform()):
            edited = subject.model(**arguments).logits
    np.testing.assert_allclose(edited[0], expected, atol=1e-5)


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_texts_of_unequal_lengths_are_read_as_one_by_one(attention):
    subject = subject_of(attention)
    texts = ["3 May 1999", "1.1.1"]
    together = dict(subject.tokenizer(texts, padding=True, return_tensors="pt"))
    together.pop("token_type_ids", None)
    written = torch.full((2, 1), START)
    with torch.no_grad():
        both = subject.model(**together, decoder_input_ids=written).logits
        for row, text in enumerate(texts):
            alone = torch.tensor([ids_of(subject, text)])
            one = subject.model(input_ids=alone, decoder_input_ids=written[:1]).logits
            torch.testing.assert_close(both[row], one[0])


@pytest.mark.parametrize("attention", ["bahdanau", "luong"])
def test_methods_run_or_are_refused_by_name(attention, tmp_path):
    subject = subject_of(attention)
    subject.model.save_pretrained(tmp_path)
    subject.tokenizer.save_pretrained(tmp_path)
    subject = attlas.load(tmp_path, device="cpu")
    for method in ("raw_attention", "gradient", "gradient_attention", "leave_one_out", "attattr"):
        explanation = attlas.explain(subject, TEXTS[0], method, prefix=PREFIX)
        assert np.abs(explanation.scores).max() > 0
    with pytest.raises(NotDefinedError, match="recurrent network"):
        attlas.explain(subject, TEXTS[0], "attention_rollout", prefix=PREFIX)


def test_it_writes_greedily_until_the_end():
    subject = subject_of("luong")
    ids = torch.tensor([ids_of(subject, TEXTS[0])])
    written = subject.model.generate(ids, max_new_tokens=4)
    for place in range(1, written.shape[1]):
        best = subject.model(input_ids=ids, decoder_input_ids=written[:, :place]).logits[0, -1]
        assert int(best.argmax()) == int(written[0, place])
    with pytest.raises(UsageError, match="greedily"):
        subject.model.generate(ids, num_beams=2)


def test_it_learns_to_copy():
    digits = [(f"{a}{b}.", f"{b}{a}") for a in "0123" for b in "0123"]
    learned = learn_writer(
        digits,
        digits,
        attention="bahdanau",
        plan=FitPlan(epochs=40, rows=8, rate=2e-2, by="exact match", patience=15),
        vector_size=8,
        hidden_size=16,
    )
    assert judge_writer(learned.model, learned.table(digits))["exact match"] > 0.9
