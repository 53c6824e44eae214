"""Randomisation: what is redrawn when, that all of it comes back, and scipy's Spearman."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
from subjects import TEXTS, ask, few, small, subject

import attlas
from attlas.measures import MEASURES, Occasion
from attlas.measures.randomisation import cannot_react, figure, randomise, spearman
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS, Scored
from attlas.models.intervening.redrawing import find_storeys, redrawn

TASK = "sequence classification"


def weights(of):
    return dict(of.model.named_parameters())


def test_every_weight_is_in_one_storey():
    for task in ("sequence classification", "causal lm", "sequence to sequence", "masked lm"):
        names = [name for storey in find_storeys(subject(task)) for name, _ in storey.weights]
        assert sorted(names) == sorted(weights(subject(task)))


def test_storeys_from_the_bottom():
    found = {storey.name: [name for name, _ in storey.weights] for storey in storeys(TASK)}
    assert list(found) == ["embeddings", "block 0", "block 1", "head"]
    assert all(name.startswith("bert.embeddings.") for name in found["embeddings"])
    assert all(name.startswith("bert.encoder.layer.1.") for name in found["block 1"])
    assert {name.split(".")[-2] for name in found["head"]} == {"dense", "classifier"}


def test_what_stands_between_two_stacks_goes_with_the_block_below():
    found = {name: storey.name for storey in storeys("sequence to sequence")
             for name, _ in storey.weights}  # fmt: skip
    assert found["encoder.final_layer_norm.weight"] == "block 1"
    assert found["decoder.block.0.layer.0.SelfAttention.q.weight"] == "block 2"
    assert found["decoder.final_layer_norm.weight"] == "head"


def test_a_table_by_which_tokens_enter_and_leave_is_an_embedding():
    tied = small("GPT2", "LMHeadModel", n_layer=2, n_head=2, n_embd=16, tie_word_embeddings=True)
    found = {name: storey.name for storey in find_storeys(tied) for name, _ in storey.weights}
    assert found["transformer.wte.weight"] == "embeddings"
    assert found["transformer.ln_f.weight"] == "head"


def storeys(task):
    return find_storeys(subject(task))


def spy(seen, of):
    """A method that notes which weights are not what they were."""
    own = {name: weight.detach().clone() for name, weight in weights(of).items()}

    def look(question):
        changed = weights(question.subject).items()
        seen.append({name for name, w in changed if not torch.equal(w, own[name])})
        assert all(torch.equal(w, own[name]) for name, w in weights(of).items())
        return Scored(torch.rand(len(question), len(question.inputs.tokens[0])))

    return Recipe(replace(METHODS["gradient"], score_tokens=look), {})


def test_the_cascade_goes_from_the_top_and_then_each_storey_alone():
    seen = []
    cuts = randomise([ask(TASK)], spy(seen, subject(TASK)), seed=0)[0]
    names = ["head", "block 1", "block 0", "embeddings"]
    assert [(cut.storey, cut.cascade) for cut in cuts] == [
        (name, cascade) for cascade in (True, False) for name in names
    ]
    changeable = {
        storey.name: {name for name, weight in storey.weights if weight.std(correction=0) > 0}
        for storey in storeys(TASK)
    }
    assert seen[0] == set()
    for count, name in enumerate(names):
        assert seen[1 + count] == set().union(*(changeable[each] for each in names[: count + 1]))
        assert seen[5 + count] == changeable[name]


def test_the_model_comes_back_bit_for_bit_even_when_interrupted():
    of = subject(TASK)
    before = {name: (w.data_ptr(), w.detach().clone()) for name, w in weights(of).items()}
    asks = [name for name, weight in weights(of).items() if weight.requires_grad]
    calls = []

    def stop(question):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return Scored(torch.rand(len(question), len(question.inputs.tokens[0])))

    stopping = Recipe(replace(METHODS["gradient"], score_tokens=stop), {})
    with pytest.raises(KeyboardInterrupt):
        randomise([ask(TASK)], stopping, seed=0)
    randomise([ask(TASK)], Recipe(METHODS["gradient"], {}), seed=0)
    for name, weight in weights(of).items():
        assert weight.data_ptr() == before[name][0] and torch.equal(weight, before[name][1])
    assert [name for name, weight in weights(of).items() if weight.requires_grad] == asks


def test_weights_are_drawn_with_their_own_mean_and_spread():
    of = subject(TASK)
    name = "bert.embeddings.word_embeddings.weight"
    own = weights(of)[name].detach().clone()
    drawn = []
    for seed in (0, 0, 1):
        with redrawn(of, storeys(TASK)[0], seed):
            drawn.append(weights(of)[name].detach().clone())
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    count, mean, spread = own.numel() ** 0.5, float(own.mean()), float(own.std())
    assert float(drawn[0].mean()) == pytest.approx(mean, abs=5 * spread / count)
    assert float(drawn[0].std()) == pytest.approx(spread, rel=5 / count)
    assert abs(np.corrcoef(own.flatten(), drawn[0].flatten())[0, 1]) < 5 / count


def test_what_reads_no_target_cannot_react_to_the_head():
    for name in ("raw_attention", "attention_rollout"):
        cuts = randomise([ask(TASK)], Recipe(METHODS[name], {}), seed=0)[0]
        assert [cut.scores for cut in cuts if cut.storey == "head"] == pytest.approx([1, 1])
        assert any(cut.sizes < 0.99 for cut in cuts if cut.storey != "head")
        assert "cannot change" in cannot_react(METHODS[name])
    cuts = randomise([ask(TASK)], Recipe(METHODS["input_x_gradient"], {}), seed=0)[0]
    assert all(cut.scores < 0.999 for cut in cuts)
    assert cannot_react(METHODS["input_x_gradient"]) is None


def test_scores_that_look_at_no_weights_stay_as_they_are():
    cuts = randomise([ask(TASK)], Recipe(METHODS["random_scores"], {}), seed=0)[0]
    assert [cut.sizes for cut in cuts] == pytest.approx([1] * 8)
    assert figure(cuts) == pytest.approx(1)


def test_the_figure_is_the_mean_of_the_cascade_below_the_head():
    texts, of = TEXTS[TASK], subject(TASK)
    cuts = randomise(of.ask(texts), Recipe(METHODS["gradient"], {}), seed=5)
    assert sorted(cuts) == [0, 1, 2]
    explanation = attlas.explain(of, texts[1], "gradient")
    found = MEASURES["randomisation"].ask(Occasion(of, texts[1], explanation, seed=5))
    expected = np.mean([cut.sizes for cut in cuts[1][1:4]])
    assert found == pytest.approx(expected)


def test_spearman_is_scipys_ties_and_all():
    random = np.random.default_rng(0)
    for _ in range(50):
        one, other = random.integers(0, 4, (2, 9)).astype(float)
        expected = scipy.stats.spearmanr(one, other).statistic
        assert spearman(one, other) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(spearman(np.ones(4), np.arange(4.0)))
    assert np.isnan(spearman(np.ones(1), np.ones(1)))


@pytest.mark.parametrize("name", ["attn_lrp", "decompx", "leave_one_out", "attattr"])
def test_works_for_methods_of_every_kind(name):
    cuts = randomise([ask(TASK)], Recipe(METHODS[name], few(name)), seed=0)[0]
    assert -1 <= figure(cuts) < 0.99
