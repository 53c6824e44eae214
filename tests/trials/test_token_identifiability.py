"""Token identifiability: maps that must be found, states that tell all or nothing."""

from importlib import import_module

import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, plain, small, subject
from tiny import LLAMA_SHAPE, subject_parts

from attlas import Subject
from attlas.errors import UsageError
from attlas.models.encoding.request import Request
from attlas.models.states.block_states import read_states
from attlas.trials.reading.recovering import StatePairs, is_recovered, learn_maps
from attlas.trials.support.scope import Scope
from attlas.trials.token_identifiability import token_identifiability

TASK = "sequence classification"
KINDS = [(kind, metric) for kind in ("identity", "linear", "MLP") for metric in ("cosine", "L2")]


WORDS = ["the", "film", "was", "not", "good", "and", "my", "dog", "kind", "a", "cat", "sat", "on"]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr("attlas.trials.reading.recovering.STEPS", 20)


def texts(count, length=5):
    draw = np.random.default_rng(0)
    return [" ".join(draw.choice(WORDS, size=length)) for _ in range(count)]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_states_are_those_of_the_model():
    given = arguments(TASK, TEXTS[TASK][0])
    with torch.no_grad():
        expected = plain(TASK)(**given, output_hidden_states=True).hidden_states
    found = read_states(ask(TASK))
    assert len(found) == len(expected) == 3
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_the_nearest_by_each_metric():
    vectors = torch.tensor([[[1.0, 0.0], [4.0, 4.0], [0.0, 2.0]]])
    guesses = torch.tensor([[[3.0, 2.5], [4.0, 4.0], [0.0, 9.0]]])
    # By the angle the first is nearest to (4, 4), and the last to (0, 2); in space, to (4, 4) both.
    assert is_recovered(guesses, vectors, "cosine").tolist() == [[False, True, True]]
    assert is_recovered(guesses, vectors, "L2").tolist() == [[False, True, False]]


def test_a_token_with_the_same_vector_is_as_good():
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    for metric in ("cosine", "L2"):
        assert is_recovered(vectors, vectors, metric).all()


def lessons(mapping, seed=0):
    states = drawn(600, 6, seed=seed)
    vectors = mapping(states)
    return StatePairs(states[:400], vectors[:400]), StatePairs(states[400:], vectors[400:])


def rate(found, lesson, kind, metric):
    guesses = found[kind, metric](lesson.states)
    right = is_recovered(guesses.reshape(20, 10, -1), lesson.vectors.reshape(20, 10, -1), metric)
    return right.double().mean().item()


def test_a_linear_map_is_found():
    matrix, shift = drawn(6, 6, seed=1), drawn(6, seed=2)
    taught, held = lessons(lambda states: 3 * states @ matrix + shift)
    found = learn_maps(taught, held, seed=0)
    torch.testing.assert_close(
        found["linear", "L2"](held.states), held.vectors, atol=1e-2, rtol=1e-2
    )
    for kind in ("linear", "MLP"):
        for metric in ("cosine", "L2"):
            assert rate(found, held, kind, metric) == 1


def test_a_bent_map_is_found_by_the_mlp_alone(monkeypatch):
    monkeypatch.setattr("attlas.trials.reading.recovering.STEPS", 600)
    taught, held = lessons(lambda states: states.abs())
    found = learn_maps(taught, held, seed=0)
    for metric in ("cosine", "L2"):
        linear, deep = (rate(found, held, kind, metric) for kind in ("linear", "MLP"))
        assert linear < 0.5 < deep


def test_nothing_is_learnt_where_there_is_nothing():
    states, vectors = drawn(600, 6, seed=3), drawn(600, 6, seed=4)
    found = learn_maps(
        StatePairs(states[:400], vectors[:400]),
        StatePairs(states[400:500], vectors[400:500]),
        seed=0,
    )
    fresh = StatePairs(states[400:], vectors[400:])
    for kind in ("linear", "MLP"):
        assert rate(found, fresh, kind, "L2") < 0.3


def bypassed():
    """A BERT whose layers hand on what they were given."""
    model, tokenizer = subject_parts(TASK)
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            for part in (layer.attention.output.dense, layer.output.dense):
                part.weight.zero_()
                part.bias.zero_()
    return Subject(model, tokenizer)


def test_states_that_are_their_tokens_are_all_found():
    found = token_identifiability(bypassed().ask(texts(8)))
    assert len(found.texts) == 8
    for kind in KINDS:
        figures = found.figures[", ".join(kind)]
        known = figures[~np.isnan(figures)]
        assert known.tolist() == [1, 1]


def wiped():
    """A BERT whose last layer gives the same state everywhere."""
    model, tokenizer = subject_parts(TASK)
    with torch.no_grad():
        model.bert.encoder.layer[-1].output.LayerNorm.weight.zero_()
    return Subject(model, tokenizer)


def test_states_that_are_all_the_same_tell_nothing():
    found = token_identifiability(wiped().ask(texts(12)))
    for kind in KINDS:
        name = ", ".join(kind)
        by_layer = found.details["by layer"][name]
        assert by_layer[0] > by_layer[1]
        assert np.nanmean(found.figures[name]) <= 0.5


def test_texts_that_are_asked_are_not_learnt_from(monkeypatch):
    seen = []
    real = learn_maps

    def watched(taught, held, seed):
        seen.append((len(taught.states), len(held.states)))
        return real(taught, held, seed)

    module = import_module("attlas.trials.token_identifiability")
    monkeypatch.setattr(module, "learn_maps", watched)
    found = token_identifiability(subject(TASK).ask(texts(8)))
    lengths = {
        number: len(ask(TASK, text).inputs.tokens[0]) for number, text in enumerate(texts(8))
    }
    asked = found.details["asked"]
    assert len(asked) == 2
    known = {
        text
        for text, value in zip(found.texts, found.figures["MLP, L2"], strict=True)
        if value >= 0
    }
    assert known == set(asked)
    for taught, held in seen:
        assert taught + held == sum(lengths.values()) - sum(lengths[text] for text in asked)


def test_special_tokens_count_only_if_asked():
    questions = subject(TASK).ask(texts(6))
    plain_figures, with_specials = (
        token_identifiability(questions, Scope(specials=specials)).details["by layer"]
        for specials in (False, True)
    )
    assert plain_figures != with_specials


def test_seeded():
    questions = subject(TASK).ask(texts(6))
    first, again, other = (token_identifiability(questions, seed=seed) for seed in (0, 0, 5))
    assert first.details == again.details
    assert first.details["asked"] != other.details["asked"]


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_decoders(task):
    request = Request(**ASKED.get(task, {}))
    found = token_identifiability(subject(task).ask(TEXTS[task], request))
    assert all(0 <= rate <= 1 for rates in found.details["by layer"].values() for rate in rates)


def test_repeated_tokens_without_positions_are_as_good():
    llama = small("Llama", "ForCausalLM", "bpe", **LLAMA_SHAPE)
    (question,) = llama.ask(["dog dog dog dog"])
    states = read_states(question)[0]
    again = [i for i, each in enumerate(states[0]) if (states[0] == each).all(-1).sum() > 1]
    assert len(again) > 1
    assert is_recovered(states, states, "cosine").all()


def test_wrong_use():
    with pytest.raises(UsageError, match="at least 3, not 2"):
        token_identifiability(subject(TASK).ask(texts(2)))
    with pytest.raises(UsageError, match="scope token"):
        token_identifiability(subject(TASK).ask(texts(3)), Scope("token"))
