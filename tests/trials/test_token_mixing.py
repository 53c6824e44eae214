"""Token mixing against torch's own Jacobians of the plain model, and cases worked by hand."""

import numpy as np
import pytest
import torch
from known_models import ignores_attention
from subjects import ASKED, TEXTS, arguments, ask, plain, small, subject
from tiny import BERT_SHAPE, LABELS, labels, subject_parts

from attlas import Subject
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.encoding.request import Request
from attlas.models.states.jacobian import head_gains, state_gains
from attlas.models.tap import softmax_watch
from attlas.trials.reading.mixtures import by_distance, other_has_more, own_share, shares_of
from attlas.trials.support.scope import Scope
from attlas.trials.token_mixing import token_mixing

TASK = "sequence classification"
TEXT = TEXTS[TASK][0]
WIDTH, HEADS, LAYERS = 32, 4, 2
POSITIONS = [3, 1]
PLACES = [(0, position) for position in POSITIONS]


def entered():
    ids = arguments(TASK, TEXT)["input_ids"]
    return plain(TASK).bert.embeddings.word_embeddings(ids)[0].detach()


def squares(function):
    """Of a function of the vectors, what each token does to it: `[token]`."""
    return torch.autograd.functional.jacobian(function, entered()).square().sum((0, 2))


def test_states_move_as_the_jacobian_says():
    found = state_gains(ask(TASK), PLACES, torch.eye(WIDTH))
    assert found.shape[:2] == (LAYERS, len(POSITIONS))
    for layer in range(LAYERS):
        for place, position in enumerate(POSITIONS):

            def state(vectors, layer=layer, position=position):
                output = plain(TASK)(inputs_embeds=vectors[None], output_hidden_states=True)
                return output.hidden_states[layer + 1][0, position]

            torch.testing.assert_close(found[layer, place], squares(state), atol=1e-5, rtol=1e-3)


def test_what_heads_give_moves_as_the_jacobian_says():
    question = ask(TASK)
    sites, width = question.subject.sites, WIDTH // HEADS
    found = head_gains(question, PLACES, torch.eye(width), sites)
    kept = []
    for layer, module in enumerate(plain(TASK).bert.encoder.layer):
        handle = module.attention.self.register_forward_hook(
            lambda _module, _given, output: kept.append(output[0])
        )
        for head in range(HEADS):
            for place, position in enumerate(POSITIONS):

                def mixed(vectors, head=head, position=position):
                    plain(TASK)(inputs_embeds=vectors[None])
                    return kept.pop()[0, position].unflatten(-1, (HEADS, width))[head]

                expected = squares(mixed)
                torch.testing.assert_close(
                    found[layer][head, place], expected, atol=1e-5, rtol=1e-3
                )
        handle.remove()


def test_parts_are_the_whole(monkeypatch):
    expected = state_gains(ask(TASK), PLACES, torch.eye(WIDTH))
    monkeypatch.setattr("attlas.models.asking.memory._TOKENS", {"cpu": 80})
    found = state_gains(ask(TASK), PLACES, torch.eye(WIDTH))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)


def test_shares_worked_by_hand():
    shares = shares_of(torch.tensor([[[4.0, 1.0, 1.0, 0.0], [9.0, 4.0, 4.0, 9.0]]]))
    torch.testing.assert_close(
        shares, torch.tensor([[[0.5, 0.25, 0.25, 0], [0.3, 0.2, 0.2, 0.3]]]).double()
    )
    own = torch.tensor([0, 2])
    assert own_share(shares, own).tolist() == [[0.5, pytest.approx(0.2)]]
    assert other_has_more(shares, own).tolist() == [[0.0, 1.0]]
    found = by_distance(shares, own)[0]
    # At 1: token 1 of the first state, tokens 1 and 3 of the second.
    assert found[:4].tolist() == pytest.approx([0.35, (0.25 + 0.2 + 0.3) / 3, 0.275, 0])
    assert found[4:].isnan().all()


def silenced():
    model, tokenizer = subject_parts(TASK)
    with torch.no_grad():
        for layer in model.bert.encoder.layer:
            layer.attention.output.dense.weight.zero_()
    return Subject(model, tokenizer)


def test_without_attention_nothing_is_mixed():
    found = token_mixing(silenced().ask([TEXT]), Scope("all"))
    assert found.figures["own share"].tolist() == [1]
    assert found.figures["another token has more"].tolist() == [0]
    assert found.details["own share by layer"] == [1.0, 1.0]


def test_heads_that_give_the_same_whatever_they_see():
    found = token_mixing(ignores_attention().ask(["good bad fine"]))
    assert np.isnan(found.figures["attention from aggregation"]).all()
    assert found.figures["own share"].tolist() == [1]
    assert "gather" not in found.sentence


def test_probes_come_near_to_the_whole():
    question = ask(TASK)
    exact = shares_of(state_gains(question, PLACES, torch.eye(WIDTH)))
    draw = torch.randn(400, WIDTH, generator=torch.Generator().manual_seed(0))
    near = shares_of(state_gains(question, PLACES, draw))
    assert (near - exact).abs().max() < 0.02


def test_figures_are_of_the_layers_of_the_scope():
    questions = subject(TASK).ask([TEXT])
    first, last, both, top = (
        token_mixing(questions, scope).figures["own share"][0]
        for scope in (Scope("layer", layer=0), Scope("layer", layer=1), Scope("all"), Scope())
    )
    assert first > last == top
    assert both == pytest.approx((first + last) / 2)


def test_content_tokens_are_drawn_by_the_seed():
    questions = subject(TASK).ask(TEXTS[TASK])
    first, again, other = (token_mixing(questions, seed=seed) for seed in (0, 0, 1))
    assert first.details == again.details and first.details != other.details
    for text, positions in zip(first.texts, first.details["positions"], strict=True):
        special = ask(TASK, TEXTS[TASK][text]).inputs.tokens[0].special
        assert not any(special[place] for place in positions)
    alone = token_mixing(subject(TASK).ask(TEXTS[TASK][:1])).figures["own share"]
    place = first.texts.index(0)
    assert first.figures["own share"][place] == pytest.approx(alone[0], abs=1e-5)


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_decoders(task):
    request = Request(**ASKED.get(task, {}))
    found = token_mixing(subject(task).ask(TEXTS[task][:1], request))
    shares = np.array(found.details["own share by layer"])
    assert ((shares > 0) & (shares < 1)).all()
    assert 0 < found.figures["attention from aggregation"][0] < np.log(2)


def test_the_model_is_left_as_it_was():
    model, tokenizer = subject_parts(TASK)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    token_mixing(Subject(model, tokenizer).ask([TEXT]))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(each.requires_grad and each.grad is None for each in model.parameters())


def test_wrong_use(monkeypatch):
    questions = subject(TASK).ask([TEXT])
    with pytest.raises(UsageError, match="scope token"):
        token_mixing(questions, Scope("token"))
    with pytest.raises(UsageError, match="probes of token_mixing must be at least 1, not 0"):
        token_mixing(questions, probes=0)
    pictures = subject("image classification").ask(TEXTS["image classification"][:1])
    with pytest.raises(UnsupportedModelError, match="pictures"):
        token_mixing(pictures)
    mpnet = small("MPNet", "ForSequenceClassification", **BERT_SHAPE, **labels(*LABELS))
    monkeypatch.setattr(softmax_watch, "_mixed_values", lambda *_: None)
    with pytest.raises(UnsupportedModelError, match="values"):
        token_mixing(mpnet.ask([TEXT]))
