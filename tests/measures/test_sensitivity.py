"""Sensitivity against captum's, and nudges against a plain model that is handed the vectors."""

from dataclasses import replace

import captum.metrics
import numpy as np
import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, few, plain, subject

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.measures import MEASURES, Occasion
from attlas.measures.sensitivity import draw_moves, sensitivities
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS, Scored
from attlas.models.asking.scores import target_scores
from attlas.models.states.nudging import nudging
from attlas.removing.removal import removable

TASK = "sequence classification"
TEXT = TEXTS[TASK][0]


def table():
    return plain(TASK).bert.embeddings.word_embeddings.weight.detach()


def plain_probability(vectors, choice):
    with torch.no_grad():
        return plain(TASK)(inputs_embeds=vectors[None]).logits[0].softmax(-1)[choice]


@torch.enable_grad()
def plain_gradient_lengths(vectors, choice):
    given = only(vectors).detach().requires_grad_()
    total = plain(TASK)(inputs_embeds=given).logits[:, choice].sum()
    return torch.autograd.grad(total, given)[0].norm(dim=-1)


def only(vectors):
    """What captum hands on, in a tuple or bare."""
    return vectors[0] if isinstance(vectors, tuple) else vectors


def moved_by(moves, chosen):
    """Moves as `[sample, token, feature]`, nothing where no token is chosen."""
    found = torch.zeros(*chosen.shape, moves.shape[1])
    found[chosen] = moves
    return found


def test_is_what_captum_finds_for_the_same_moves():
    question = ask(TASK)
    chosen, moves = draw_moves(question, [0], 3, 0.1, 10)
    content, moved = removable(question, 0), iter(moved_by(moves, chosen))
    choice = question.targets[0].picks[0][1]
    expected = captum.metrics.sensitivity_max(
        lambda vectors: (plain_gradient_lengths(vectors, choice)[:, content],),
        table()[arguments(TASK, TEXT)["input_ids"]],
        perturb_func=lambda vectors, _: torch.stack([each + next(moved) for each in only(vectors)]),
        n_perturb_samples=10,
    )
    found = sensitivities([question], Recipe(METHODS["gradient"], {}), seed=3, radius=0.1)
    assert next(moved, None) is None  # captum took every one
    assert found == pytest.approx(expected.numpy(), rel=1e-4)


def test_moves_are_drawn_evenly_from_a_ball():
    question = ask(TASK)
    chosen, moves = draw_moves(question, [0], 0, 0.02, 2000)
    content = removable(question, 0)
    vectors = table()[arguments(TASK, TEXT)["input_ids"][0, content]]
    share = moves.norm(dim=1) / (0.02 * vectors.norm(dim=1).mean())
    assert chosen.sum(dim=1).tolist() == [len(content)] * 2000
    assert not chosen[:, [i for i in range(chosen.shape[1]) if i not in content]].any()
    assert share.max() <= 1 + 1e-6
    # In d dimensions the mean distance from the middle is d / (d + 1).
    width = moves.shape[1]
    assert float(share.mean()) == pytest.approx(width / (width + 1), abs=2e-3)
    assert float((moves / moves.norm(dim=1, keepdim=True)).mean(dim=0).norm()) < 0.05


def test_a_token_keeps_its_nudge_when_others_are_deleted_or_masked():
    question = ask(TASK)
    chosen, moves = draw_moves(question, [0], 1, 0.5, 2)
    choice, content = question.targets[0].picks[0][1], removable(question, 0)
    ids = arguments(TASK, TEXT)["input_ids"][0]
    masked = table()[subject(TASK).tokenizer.mask_token_id]
    for how in ("delete", "mask"):
        with nudging(question.rows([0, 0]), moves, chosen) as moved:
            scores = METHODS["leave_one_out"].score(moved, {"removal": how}).scores
        for row, offsets in enumerate(moved_by(moves, chosen)):
            vectors = table()[ids] + offsets
            whole = plain_probability(vectors, choice)
            for place in content:
                without = torch.cat([vectors[:place], vectors[place + 1 :]])
                if how == "mask":
                    without = vectors.clone()
                    without[place] = masked
                expected = whole - plain_probability(without, choice)
                torch.testing.assert_close(scores[row, place], expected, atol=1e-5, rtol=1e-4)


# Of each way to ask the model one, where the model is one more than the first.
FEW = ("raw_attention", "leave_one_out", "lime", "integrated_gradients", "attn_lrp")
EVERY = [(TASK, method.name) for method in METHODS]
EVERY += [(task, name) for task in ("causal lm", "sequence to sequence") for name in FEW]


@pytest.mark.parametrize(("task", "name"), EVERY)
def test_works_for_every_method(task, name):
    recipe = Recipe(METHODS[name], few(name))
    (found,) = sensitivities([ask(task)], recipe, seed=0, samples=1)
    assert 0 < found < 5 or (found == 0 and name == "random_scores")


def test_scores_that_are_always_the_same_win_and_zeros_say_nothing():
    constant = replace(METHODS["gradient"], score_tokens=lambda question: _scored(question, 2.0))
    nothing = replace(METHODS["gradient"], score_tokens=lambda question: _scored(question, 0.0))
    assert sensitivities([ask(TASK)], Recipe(constant, {}), seed=0)[0] == 0
    assert np.isnan(sensitivities([ask(TASK)], Recipe(nothing, {}), seed=0)[0])


def _scored(question, value):
    return Scored(torch.full((len(question), len(question.inputs.tokens[0])), value))


def test_the_model_is_left_as_it_was_even_when_interrupted():
    question = ask(TASK)
    before = target_scores(question, "logit")
    chosen, moves = draw_moves(question, [0], 0, 0.5, 1)
    with pytest.raises(KeyboardInterrupt), nudging(question, moves, chosen) as moved:
        assert not torch.equal(target_scores(moved, "logit"), before)
        raise KeyboardInterrupt
    assert torch.equal(target_scores(question, "logit"), before)
    assert all("forward" not in vars(module) for module in subject(TASK).model.modules())


def test_texts_of_several_lengths_and_the_measure_of_one():
    texts = TEXTS[TASK]
    recipe = Recipe(METHODS["gradient"], {})
    found = sensitivities(subject(TASK).ask(texts), recipe, seed=0)
    assert found.shape == (3,) and (found > 0).all()
    explanation = attlas.explain(subject(TASK), texts[0], "gradient")
    occasion = Occasion(subject(TASK), texts[0], explanation, seed=0)
    assert MEASURES["sensitivity"].ask(occasion) == pytest.approx(found[0], rel=1e-4)


def test_an_encoder_decoder_is_moved_in_both_streams():
    task = "sequence to sequence"
    question = ask(task, **ASKED[task])
    chosen, _ = draw_moves(question, [0], 0, 0.1, 1)
    segments = np.array(question.inputs.tokens[0].segments)[chosen[0].numpy()]
    assert len(set(segments)) == 2


def test_pictures_are_refused_and_so_is_nonsense():
    with pytest.raises(UnsupportedModelError, match="cannot be nudged"):
        sensitivities(
            [ask("image classification")], Recipe(METHODS["gradient"], {}), seed=0, samples=1
        )
    with pytest.raises(UsageError, match="radius is above zero"):
        sensitivities([ask(TASK)], Recipe(METHODS["gradient"], {}), seed=0, radius=0.0)
