"""What holds for every recurrent classifier: batches, files, the tap, and changed attention."""

import numpy as np
import pytest
import torch

import attlas
from attlas.errors import NotDefinedError, UnknownNameError, UsageError
from attlas.explaining import explanations
from attlas.models.asking import filling
from attlas.models.recurrent.classifier import RecurrentForSequenceClassification
from attlas.models.recurrent.configuration import RecurrentConfig
from attlas.models.recurrent.learning import build_classifier
from attlas.models.recurrent.words import build_vocabulary, random_vectors

TEXTS = ["a warm and funny film . it was great !", "dull", "not a good one , and long . no"]
LABELS = ("NEGATIVE", "POSITIVE")
KINDS = [
    {"encoder": "bilstm"},
    {"encoder": "cnn", "attention": "scaled_dot"},
    {"encoder": "average", "attention": "uniform"},
    {"encoder": "bigru", "hierarchical": True},
    {"encoder": "none", "hierarchical": True},
    {"encoder": "bilstm", "reads": "question"},
    {"encoder": "cnn", "reads": "pair", "attention": "scaled_dot"},
]


def subject_of(**parts):
    tokenizer = build_vocabulary(TEXTS)
    vectors = random_vectors(len(tokenizer), 8, seed=3) * 10
    sizes = {"hidden_size": 8, "kernels": (1, 3)} | parts
    return attlas.Subject(build_classifier(tokenizer, LABELS, vectors, seed=1, **sizes), tokenizer)


def given(parts, texts=TEXTS):
    two = parts.get("reads", "text") != "text"
    return [(text, other) for text, other in zip(texts, texts[::-1], strict=True)] if two else texts


def encoded(subject, texts):
    columns = zip(*texts, strict=True) if isinstance(texts[0], tuple) else [texts]
    found = subject.tokenizer(
        *map(list, columns), padding=True, return_tensors="pt", return_token_type_ids=True
    )
    return dict(found)


@pytest.mark.parametrize("parts", KINDS, ids=str)
def test_texts_of_unequal_lengths_are_read_as_one_by_one(parts):
    subject = subject_of(**parts)
    model, texts = subject.model.double().eval(), given(parts)
    together = encoded(subject, texts)
    states = model.encode(**together)
    weights = model.weigh(states)
    for row, text in enumerate(texts):
        alone = encoded(subject, [text])
        count = alone["input_ids"].shape[1]
        own = model.encode(**alone)
        np.testing.assert_allclose(
            weights[row, :count].detach(), model.weigh(own)[0].detach(), atol=1e-12
        )
        np.testing.assert_allclose(
            model(**together).logits[row].detach(), model(**alone).logits[0].detach(), atol=1e-12
        )
    assert (weights[~states.visible] == 0).all()
    np.testing.assert_allclose(weights.sum(1).detach(), 1, atol=1e-12)


@pytest.mark.parametrize("parts", KINDS, ids=str)
def test_a_saved_model_opens_to_the_same_bits(parts, tmp_path):
    subject = subject_of(**parts)
    subject.model.save_pretrained(tmp_path)
    subject.tokenizer.save_pretrained(tmp_path)
    again = attlas.load(tmp_path, device="cpu")
    own, found = subject.model.state_dict(), again.model.state_dict()
    assert own.keys() == found.keys()
    assert all(torch.equal(own[name], found[name]) for name in own)
    texts = given(parts)
    assert again.predict(texts).equals(subject.predict(texts))
    assert again.model.config.to_dict().keys() >= {"encoder", "attention", "reads"}


@pytest.mark.parametrize("parts", KINDS, ids=str)
def test_the_tap_sees_what_the_model_computes_and_changes_nothing(parts):
    subject = subject_of(**parts)
    text = given(parts)[0]
    arguments = subject.encode(text).arguments
    with torch.no_grad():
        before = subject.model(**arguments).logits
        states = subject.model.encode(**arguments)
        with subject.tap() as seen:
            opened = subject.model(**arguments).logits
        assert torch.equal(before, opened)
        assert torch.equal(seen.weights[-1][:, 0, 0], subject.model.weigh(states))
        assert seen.sites[-1].name == "pooling.0"
        assert torch.equal(subject.model(**arguments).logits, before)


@pytest.mark.parametrize("parts", KINDS, ids=str)
def test_an_edit_gives_the_output_under_that_attention(parts):
    subject = subject_of(**parts)
    arguments = subject.encode(given(parts)[0]).arguments
    with torch.no_grad():
        states = subject.model.encode(**arguments)
        visible = states.visible[0]
        even = torch.where(visible, 1.0 / visible.sum(), 0.0)[None]
        first = torch.nn.functional.one_hot(visible.long().argmax(), len(visible)).float()[None]
        pooling = {"kind": "pooling"}
        for edit, weights in (
            (attlas.edits.uniform().at(**pooling), even),
            (attlas.edits.replace(first[:, None, None]).at(**pooling), first),
        ):
            with subject.tap(edit):
                edited = subject.model(**arguments).logits
            by_hand = subject.model.decode(
                (weights[0] @ states.hidden[0])[None, None], states.question
            )
            torch.testing.assert_close(edited, by_hand[:, 0])
            torch.testing.assert_close(edited, subject.model.read(states, weights))
        many = torch.stack([even, first], dim=1)
        both = subject.model.read(states, many)
        torch.testing.assert_close(both[:, 1], subject.model.read(states, first))
        torch.testing.assert_close(
            subject.model(**arguments, attention_weights=even).logits, both[:, 0]
        )


def test_gradients_on_the_attention_are_those_of_the_decoder():
    subject = subject_of()
    arguments = subject.encode(TEXTS[0]).arguments
    states = subject.model.encode(**arguments)
    weights = subject.model.weigh(states).detach().requires_grad_()
    logit = subject.model.read(states, weights)[0, 1]
    (by_hand,) = torch.autograd.grad(logit, weights)
    explanation = attlas.explain(subject, TEXTS[0], "gradient_attention", target="POSITIVE")
    expected = (by_hand * weights)[0].detach().numpy()
    np.testing.assert_allclose(explanation.scores, expected, atol=1e-6)


@pytest.mark.parametrize("reads", ["text", "question"])
def test_the_methods_that_are_defined_run(reads):
    subject = subject_of(reads=reads)
    text = given({"reads": reads})[0]
    for method in (
        "raw_attention",
        "gradient",
        "input_x_gradient",
        "integrated_gradients",
        "leave_one_out",
        "gradient_attention",
        "attattr",
    ):
        explanation = attlas.explain(subject, text, method)
        assert len(explanation.scores) == len(explanation.tokens)
        assert np.abs(explanation.scores).max() > 0, method
    raw = attlas.explain(subject, text, "raw_attention")
    assert raw.scores.sum() == pytest.approx(1)
    assert [raw.scores[i] for i, special in enumerate(raw.tokens.special) if special] == [0] * (
        2 if reads == "text" else 4
    )


@pytest.mark.parametrize("method", ["raw_attention", "gradient_attention"])
@pytest.mark.parametrize(
    "fill", [filling.fill_list, lambda asked: filling._joined(asked, 16, 2**14)]
)
def test_texts_that_share_a_batch_are_explained_as_one_by_one(method, fill, monkeypatch):
    """On a CPU near lengths share a batch, on a GPU any; the attention keeps its single row."""
    monkeypatch.setattr(explanations, "fill_list", fill)
    subject = subject_of()
    texts = [" ".join(TEXTS[0].split()[:count]) for count in (9, 8, 6, 2)]
    together = attlas.explain(subject, texts, method)
    for text, each in zip(texts, together, strict=True):
        alone = attlas.explain(subject, text, method)
        np.testing.assert_allclose(each.scores, alone.scores, atol=1e-6)
        (own,), (expected,) = each.maps.weights, alone.maps.weights
        assert own.shape == expected.shape == (1, 1, len(alone.tokens))
        np.testing.assert_allclose(own, expected, atol=1e-6)


@pytest.mark.parametrize(
    "method", ["attention_rollout", "attention_flow", "generic_relevance", "value_zeroing", "alti"]
)
def test_a_method_that_follows_layers_is_refused_by_name(method):
    with pytest.raises(NotDefinedError, match="pool"):
        attlas.explain(subject_of(), TEXTS[0], method)


@pytest.mark.parametrize("trial", ["permutation", "erasure", "agreement"])
def test_trials_run(trial):
    data = [(text, LABELS[number % 2]) for number, text in enumerate(TEXTS)]
    options = {"repeats": 3} if trial == "permutation" else {}
    result = attlas.try_trial(subject_of(), data, trial, **options)
    assert result.name == trial and result.figures


def test_the_trial_of_even_attention_gives_the_difference_by_hand():
    subject, moved = subject_of(), []
    for text in (TEXTS[0], TEXTS[2]):  # one word has one weight
        with torch.no_grad():
            states = subject.model.encode(**subject.encode(text).arguments)
            even = states.visible.float() / states.visible.sum()
            own, other = (
                subject.model.read(states, weights).softmax(-1)[0]
                for weights in (subject.model.weigh(states), even)
            )
        moved.append(float((own - other).abs().sum() / 2))
    result = attlas.try_trial(subject, [(text, "POSITIVE") for text in TEXTS], "uniform")
    assert result["difference"].value == pytest.approx(np.mean(moved), abs=1e-6)


def test_one_text_for_a_model_that_reads_two_is_refused():
    with pytest.raises(UsageError, match="give a pair"):
        subject_of(reads="pair").predict([TEXTS[0]])
    with pytest.raises(UsageError, match="give a pair"):
        subject_of(reads="question").predict([TEXTS[0]])


def test_unknown_parts_are_refused():
    with pytest.raises(UnknownNameError, match="bilstm"):
        RecurrentConfig(encoder="gru")
    with pytest.raises(UnknownNameError, match="additive"):
        RecurrentConfig(attention="tanh")
    with pytest.raises(UsageError, match="one text"):
        RecurrentConfig(sentences=[4], reads="pair")
    with pytest.raises(UsageError, match="two or more labels"):
        RecurrentForSequenceClassification(RecurrentConfig(num_labels=1))
