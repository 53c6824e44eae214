"""Learning: repeatable, resumable, the right epoch kept, in batches of near lengths."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from attlas.errors import UsageError
from attlas.models.recurrent.batches import text_table
from attlas.models.recurrent.checkpoints import Checkpoint
from attlas.models.recurrent.fitting import (
    FitPlan,
    balanced_weight,
    evaluate,
    fit,
    label_loss,
    predict_table,
)
from attlas.models.recurrent.learning import build_classifier, labelled_table, learn
from attlas.models.recurrent.words import build_vocabulary, random_vectors

GOOD, BAD = ("fine", "warm"), ("dull", "slow")
TEXTS = [
    (f"the {what} was {word}{' and long' * more}", "good" if word in GOOD else "bad")
    for what, word, more in product(("film", "play", "book"), GOOD + BAD, range(3))
]
PLAN = FitPlan(epochs=4, rows=8, rate=1e-2)
SMALL = {"vector_size": 8, "parts": {"hidden_size": 8, "dropout": 0.2}}


def weights_of(learned):
    return {name: value.clone() for name, value in learned.model.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_model_learns():
    learned = learn(TEXTS, TEXTS, plan=replace(PLAN, epochs=20, by="accuracy"), **SMALL)
    figures = evaluate(learned.model, learned.table(TEXTS))
    assert figures["accuracy"] > 0.9 and figures["auc"] > 0.95


def test_the_same_seed_gives_the_same_weights():
    first, again = (learn(TEXTS, TEXTS, plan=PLAN, **SMALL) for _ in range(2))
    other = learn(TEXTS, TEXTS, plan=replace(PLAN, seed=1), **SMALL)
    assert same(weights_of(first), weights_of(again))
    assert first.fitted == again.fitted
    assert not same(weights_of(first), weights_of(other))


def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path):
    whole = learn(TEXTS, TEXTS, plan=PLAN, **SMALL)

    def stop(what, done, total):
        if what.startswith("epoch 3") and done % 5 == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(TEXTS, TEXTS, plan=PLAN, folder=tmp_path, tell=stop, **SMALL)
    told = []
    resumed = learn(
        TEXTS, TEXTS, plan=PLAN, folder=tmp_path, tell=lambda what, *_: told.append(what), **SMALL
    )
    assert told[0] == "epoch 3 of 4"
    assert same(weights_of(whole), weights_of(resumed))
    assert whole.fitted == resumed.fitted
    assert {path.suffix for path in tmp_path.iterdir()} == {".safetensors"}


def test_another_training_in_the_folder_is_refused(tmp_path):
    learn(TEXTS, TEXTS, plan=replace(PLAN, epochs=1), folder=tmp_path, **SMALL)
    with pytest.raises(UsageError, match="seed is 0 there and 1 here"):
        learn(TEXTS, TEXTS, plan=replace(PLAN, seed=1), folder=tmp_path, **SMALL)


def state_after(figures, patience=None):
    state = Checkpoint()
    for epoch, each in enumerate(figures):
        if state.is_over(patience):
            break
        state = state.after(epoch, {"auc": each}, "auc", {"epoch": torch.tensor(epoch)})
    return state


def test_the_best_epoch_is_kept_and_never_the_first():
    assert state_after([0.9, 0.5, 0.7, 0.6]).best == 2
    assert int(state_after([0.9, 0.5, 0.7, 0.6]).best_weights["epoch"]) == 2
    assert state_after([0.9]).best == 0
    assert state_after([0.1, 0.7, 0.7]).best == 1  # of equal ones the first


def test_it_stops_when_nothing_gets_better():
    assert state_after([0.1, 0.8, 0.5, 0.6, 0.9], patience=2).epoch == 4
    assert state_after([0.1, 0.8, 0.5, 0.6, 0.9]).best == 4
    assert state_after([0.5, 0.6, 0.6, 0.7, 0.1]).setbacks("auc") == 2


def test_the_loss_counts_rare_labels_as_often():
    tokenizer = build_vocabulary([text for text, _ in TEXTS])
    model = build_classifier(tokenizer, ("bad", "good"), random_vectors(len(tokenizer), 8))
    table = labelled_table(model, tokenizer, TEXTS[::5])
    labels = table.labels.tolist()
    batch = table.batch(range(len(labels)))
    number = model(**batch.arguments).logits.diff(dim=1)[:, 0]
    weight = len(labels) / sum(labels) - 1
    by_hand = torch.nn.functional.binary_cross_entropy_with_logits(
        number, table.labels.float(), pos_weight=torch.tensor(weight), reduction="sum"
    )
    assert balanced_weight(labels) == weight
    torch.testing.assert_close(label_loss(weight)(model, batch), by_hand)
    assert balanced_weight([0, 1, 2]) is None and balanced_weight([0, 0]) is None


def test_the_attention_does_not_decay():
    tokenizer = build_vocabulary([text for text, _ in TEXTS])
    model = build_classifier(
        tokenizer, ("bad", "good"), random_vectors(len(tokenizer), 8), hidden_size=8
    )
    table = labelled_table(model, tokenizer, TEXTS)
    before = {name: value.clone() for name, value in model.named_parameters()}

    def nothing(model, _):  # so that only decay moves a weight
        return sum((each * 0).sum() for each in model.parameters())

    fit(model, table, table, FitPlan(epochs=1, rows=36, decay=0.1), loss=nothing)
    still = {name for name, value in model.named_parameters() if torch.equal(value, before[name])}
    assert still == {name for name in before if ".attention." in name}


def test_batches_hold_each_text_once_and_near_lengths():
    tokenizer = build_vocabulary([text for text, _ in TEXTS])
    table = text_table(tokenizer, [text for text, _ in TEXTS], [0] * len(TEXTS))
    chosen = table.drawn(8, (0, 1))
    assert sorted(row for rows in chosen for row in rows) == list(range(len(TEXTS)))
    assert chosen != table.drawn(8, (0, 2)) and chosen == table.drawn(8, (0, 1))
    spread = [np.ptp([table.lengths[row] for row in rows]) for rows in chosen]
    assert np.mean(spread) < np.ptp(table.lengths) / 2
    batch = table.batch([0, 1])
    assert batch.input_ids.shape[1] == max(table.lengths[:2])
    assert batch.attention_mask.sum(1).tolist() == table.lengths[:2]


def test_predictions_come_in_the_order_of_the_texts():
    learned = learn(TEXTS, TEXTS, plan=replace(PLAN, epochs=2), **SMALL)
    table = learned.table(TEXTS)
    found = predict_table(learned.model, table)
    for row in (0, 7, 20):
        alone = predict_table(learned.model, learned.table(TEXTS[row : row + 1]))
        np.testing.assert_allclose(found[row], alone[0], atol=1e-6)


def test_wrong_plans_and_labels_are_refused():
    with pytest.raises(UsageError, match="1 or more epochs"):
        FitPlan(epochs=0)
    learned = learn(TEXTS, TEXTS, plan=replace(PLAN, epochs=1), **SMALL)
    with pytest.raises(UsageError, match="unknown label 'ugly'"):
        learned.table([("a film", "ugly")])


KILLED = """
import sys
from itertools import product
sys.path.insert(0, {tests!r})
from attlas.training.train import train
texts = [(f"the {{a}} {{b}} was {{c}} {{d}}", "good" if c in ("fine", "warm") else "bad")
         for a, b, c, d in product("pqrs", "tuvw", ("fine", "warm", "dull", "slow"), "wxyz")]
train("bilstm", texts, {out!r}, vector_size=16, epochs=30, seed=3)
"""


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(tmp_path):
    def started(out):
        code = KILLED.format(tests=os.path.dirname(__file__), out=str(tmp_path / out))
        return subprocess.Popen([sys.executable, "-c", code])

    def written():
        place = tmp_path / "killed" / "training.safetensors"
        return place.stat().st_mtime_ns if place.exists() else 0

    assert started("whole").wait() == 0
    for _ in range(3):  # each time after one more epoch at least, somewhere in the next
        before, process = written(), started("killed")
        while written() == before:
            assert process.poll() is None, "it ended before it was killed"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert started("killed").wait() == 0
    whole, killed = (
        (tmp_path / out / "model.safetensors").read_bytes() for out in ("whole", "killed")
    )
    assert whole == killed
