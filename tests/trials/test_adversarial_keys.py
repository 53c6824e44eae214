import numpy as np
import pytest
import torch
from known_models import ignores_attention
from subjects import TEXTS, arguments, ask, plain, small, subject

from attlas.data.example import Example
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.scores import run_logits
from attlas.models.intervening.keys import run_with_keys
from attlas.trials.adversarial_keys import (
    AGREES,
    CHANGE,
    FAR,
    LOSS,
    MARKED_BEFORE,
    RIGHT,
    RIGHT_BEFORE,
    adversarial_keys,
)
from attlas.trials.searching.key_adversary import KeyAdversary, make_key_batch
from attlas.trials.support.scope import Scope
from attlas.trials.support.text_halves import split_texts

TASK = "sequence classification"


def test_other_keys_are_what_the_queries_are_compared_with():
    """Of the first layer, by the model's own projections and a softmax written out."""
    question, model = ask(TASK), plain(TASK)
    site = question.subject.sites[0]
    with torch.no_grad():
        clean = run_with_keys(question, [site])
        new = torch.randn(clean.keys[site].shape, generator=torch.Generator().manual_seed(0))
        found = run_with_keys(question, [site], lambda *_: new)
        given = arguments(TASK, TEXTS[TASK][0])
        hidden = model.bert.embeddings(given["input_ids"])
        block = model.bert.encoder.layer[0].attention.self
        heads = block.num_attention_heads
        apart = [x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (block.query(hidden), new)]
        scores = apart[0] @ apart[1].transpose(-1, -2) / apart[0].shape[-1] ** 0.5
        assert torch.allclose(clean.keys[site], block.key(hidden), atol=1e-5)
    assert torch.allclose(found.calls[site].weights, scores.softmax(-1), atol=1e-5)
    assert not torch.allclose(found.logits, clean.logits, atol=1e-3)


@pytest.mark.parametrize("task", [TASK, "causal lm"])
def test_its_own_keys_leave_a_model_as_it_is(task):
    question = ask(task)
    with torch.no_grad():
        same = run_with_keys(question, question.subject.sites)
        assert torch.allclose(same.logits, run_logits(question), atol=1e-5)


def test_no_key_moves_beyond_its_reach_and_special_ones_stay():
    batch = make_key_batch(ask(TASK), Scope("all"))
    adversary = KeyAdversary([batch], reach=0.5, seed=0)
    adversary.weights = [100 * each for each in adversary.weights]
    special = torch.tensor(batch.question.inputs.tokens[0].special)
    for site, keys in adversary.keys(batch).items():
        own = batch.clean.keys[site]
        far = ((keys - own).norm(dim=-1) / own.norm(dim=-1))[0]
        assert far[special].tolist() == [0] * int(special.sum())
        assert far[~special].numpy() == pytest.approx(0.5, abs=1e-5)


def test_where_nothing_reads_the_attention_keys_go_as_far_as_they_may():
    texts = ["good bad fine", "bad fine good", "fine fine bad bad", "good good bad bad"]
    found = adversarial_keys(ignores_attention().ask(texts), epochs=60, rate=0.01)
    judged = [number in (1, 3) for number in found.texts]
    assert np.array_equal(~np.isnan(found.figures[AGREES]), judged)
    assert found.figures[AGREES][judged].tolist() == [1, 1]
    assert np.nanmax(np.abs(found.figures[CHANGE])) < 1e-6
    assert np.nanmin(found.figures[FAR]) > 1.9


def examples(labels):
    text = TEXTS[TASK][0]
    start = text.index("good")
    return [Example(text, label, ((start, start + 4),)) for label in labels]


def test_with_gold_labels_alone_the_loss_falls():
    asked = subject(TASK)
    (label,) = asked.predict([TEXTS[TASK][0]])["label"]
    other = next(name for name in asked.labels if name != label)
    found = adversarial_keys(
        [ask(TASK)], alpha=1.0, gold=True, epochs=30, examples=examples([other])
    )
    assert found.figures[LOSS][0] < -0.01
    assert found.figures[RIGHT_BEFORE].tolist() == [0]
    assert "trained and tested on all" in found.notes[1]


def test_marked_words_are_held_to_the_attention():
    found = adversarial_keys([ask(TASK)], epochs=1, examples=examples([None]))
    with torch.no_grad():
        output = plain(TASK)(**arguments(TASK, TEXTS[TASK][0]), output_attentions=True)
    tokens = ask(TASK).inputs.tokens[0]
    content = ~np.array(tokens.special)
    rows = output.attentions[-1][0, :, 0][:, content].double()
    scores = (rows / rows.sum(-1, keepdim=True)).mean(0).numpy()
    inside = [place is not None and place[0] < 21 and place[1] > 17 for place in tokens.offsets]
    ranked = np.array(inside)[content][np.argsort(-scores)]
    expected = np.mean([ranked[: place + 1].mean() for place in np.flatnonzero(ranked)])
    assert found.figures[MARKED_BEFORE][0] == pytest.approx(expected)
    assert RIGHT not in found.figures


def test_the_model_is_left_as_it_was_and_a_seed_finds_the_same():
    asked = subject("causal lm")
    before = {name: each.clone() for name, each in asked.model.state_dict().items()}
    first, again = (
        adversarial_keys(asked.ask(TEXTS["causal lm"]), Scope("layer", 0), epochs=2, seed=3)
        for _ in range(2)
    )
    assert all(torch.equal(each, before[name]) for name, each in asked.model.state_dict().items())
    assert all(each.requires_grad for each in asked.model.parameters())
    for name, values in first.figures.items():
        assert np.array_equal(values, again.figures[name], equal_nan=True)


def test_texts_are_trained_on_or_judged_never_both():
    texts = [TEXTS[TASK][number % 3] for number in range(7)]
    kept, judged = split_texts(subject(TASK).ask(texts))
    trained, tried = ({n for each in part for n in each.order} for part in (kept, judged))
    assert trained | tried == set(range(7))
    assert not trained & tried


def test_what_cannot_be_asked_is_refused():
    hidden = small("Bloom", "ForSequenceClassification", hidden_size=32, n_layer=2, n_head=4)
    with pytest.raises(UnsupportedModelError, match="are not accessible"):
        adversarial_keys(hidden.ask(TEXTS[TASK]), epochs=1)
    with pytest.raises(UsageError, match="no examples"):
        adversarial_keys([ask(TASK)], gold=True)
    with pytest.raises(UsageError, match="none of NEGATIVE"):
        adversarial_keys([ask(TASK)], gold=True, examples=examples(["dull"]))


def test_examples_without_a_label_have_no_accuracy():
    texts = ["a good film", "a bad film", "a good and long film", "a bad and long film"]
    asked = subject(TASK)
    some = [
        Example(text, asked.labels[0] if number < 2 else None) for number, text in enumerate(texts)
    ]
    found = adversarial_keys(asked.ask(texts), epochs=1, examples=some)
    accuracy = dict(zip(found.texts, found.figures[RIGHT], strict=True))
    assert accuracy[1] in (0, 1) and np.isnan(accuracy[3])


def test_too_few_examples_are_refused():
    with pytest.raises(UsageError, match="text 1 has no example: there are 1"):
        adversarial_keys(
            subject(TASK).ask(["a good film", "a bad film"]), examples=examples([None])
        )
