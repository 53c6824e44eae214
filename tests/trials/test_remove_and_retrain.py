"""Remove and retrain, on texts where it is known which words decide the label."""

from copy import deepcopy
from random import Random

import numpy as np
import pytest
import torch
from known_models import bag_of_words
from subjects import ask
from tiny import labels
from transformers import BertConfig, BertForSequenceClassification

import attlas
from attlas.data.example import Example
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.methods import METHODS, Method, Scored
from attlas.models.intervening import training
from attlas.models.intervening.training import TrainingPlan, fresh_copy, rate_at
from attlas.trials.relearning.curves import chosen, hide_more, none_hidden, reduced
from attlas.trials.relearning.relearned import MASKED, OWN, WHOLE, area, area_name, relative_areas
from attlas.trials.remove_and_retrain import remove_and_retrain

NAMES = ("NEGATIVE", "POSITIVE")
FIRST, SECOND = ("bad", "good"), ("no", "yes")  # a word for each label
OTHERS = tuple(f"w{number}" for number in range(20))
LENGTH = 8
FAST = {"epochs": 12, "rate": 0.03, "rows": 64, "shares": (1 / LENGTH, 2 / LENGTH)}


@pytest.fixture(scope="module")
def subject():
    """A small BERT whose own weights are random: what it would explain plays no part here."""
    words = bag_of_words(dict.fromkeys((*FIRST, *SECOND, *OTHERS), 1.0)).tokenizer
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        **labels(*NAMES),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertForSequenceClassification(config).eval()
    return attlas.Subject(model, words, name="small")


def texts(count, seed, *deciding):
    """Texts at whose random places one word of each pair stands for the label."""
    random, found = Random(seed), []
    for number in range(count):
        label = number % 2
        words = random.choices(OTHERS, k=LENGTH)
        for place, pair in zip(random.sample(range(LENGTH), len(deciding)), deciding, strict=True):
            words[place] = pair[label]
        found.append(Example(" ".join(words), NAMES[label]))
    return found


def run(subject, deciding, method, count=128, **options):
    tested = texts(count // 2, 1, *deciding)
    return remove_and_retrain(
        subject.ask([each.text for each in tested]),
        training=texts(count, 2, *deciding),
        gold={number: NAMES.index(each.label) for number, each in enumerate(tested)},
        methods=[method],
        **{**FAST, **options},
    )


def naming(*order):
    """A method that gives its highest score to the first of these kinds of word that is left.

    The others of them come last.
    """

    def score(question):
        rows = []
        for tokens in question.inputs.tokens:
            left = next((kind for kind in order if set(kind) & set(tokens)), ())
            known = {word for kind in order for word in kind}
            rows.append([-9.0 if t in left else 0.0 if t in known else 1.0 for t in tokens])
        return Scored(torch.tensor(rows))

    return score


@pytest.fixture
def named(monkeypatch):
    """Register a method for the time of a test."""

    def register(*order):
        record = Method("named", naming(*order), "W", True, None, "", "The deciding word.")
        monkeypatch.setitem(METHODS._parts, "named", record)
        return "named"

    return register


def test_without_the_word_that_decides_nothing_is_learned(subject, named):
    found = run(subject, (FIRST,), named(FIRST), forms=["plain"], shares=(1 / LENGTH,))
    accuracy = found.details["accuracy"]
    assert accuracy["named, plain"][0] > 0.95  # whole texts
    # Half of the texts are of each label, so chance is one half.
    assert max(accuracy["named, plain"][1:]) < 0.65
    # One of eight words at random leaves the deciding one in 7 of 8 texts.
    assert accuracy["random_scores, plain"][1] > 0.8
    assert found.details["relative area"]["named, plain"]["low"] > 0.5
    assert found.figures[area_name("plain", "named")].mean() > 0.15
    assert "named" in found.sentence and "plain" in found.sentence


def test_of_two_words_that_say_the_same_only_the_recursive_form_finds_the_second(subject, named):
    found = run(subject, (FIRST, SECOND), named(FIRST, SECOND))
    accuracy = found.details["accuracy"]
    assert min(accuracy["named, plain"][:3]) > 0.9  # the other word is still there
    assert accuracy["named, recursive"][1] == accuracy["named, plain"][1]  # the same first step
    assert accuracy["named, recursive"][2] < 0.65
    assert found.details["trainings"] == 2 + 2 + 1 + 2 * 1


def test_a_retrained_model_explains_what_is_left_by_its_own_prediction(subject, monkeypatch):
    asked = []

    def spy(question):
        asked.append(question)
        return Scored(torch.rand(len(question), len(question.inputs.tokens[0])))

    monkeypatch.setitem(METHODS._parts, "spy", Method("spy", spy, "W", False, None, "", "Spy."))
    run(subject, (FIRST,), "spy", 16, epochs=1, forms=["recursive"])
    own = [each for each in asked if each.subject.model is subject.model]
    new = [each for each in asked if each.subject.model is not subject.model]
    assert own and new
    assert not any("[MASK]" in tokens for each in own for tokens in each.inputs.tokens)
    for each in new:
        ids = each.inputs.arguments["input_ids"]
        assert (ids == subject.tokenizer.mask_token_id).sum(dim=1).tolist() == [1] * len(each)
        assert [tokens.texts.count("[MASK]") for tokens in each.inputs.tokens] == [1] * len(each)
        with torch.no_grad():
            best = each.subject.model(**each.inputs.arguments).logits.argmax(dim=-1)
        assert [target.name for target in each.targets] == [NAMES[label] for label in best]


def test_the_model_and_the_state_of_chance_are_left_as_they_were(subject, named):
    before, state = deepcopy(subject.model.state_dict()), torch.get_rng_state()
    first = run(subject, (FIRST,), named(FIRST), 16, epochs=1, start="weights", shares=(0.5,))
    assert all(
        torch.equal(before[name], value) for name, value in subject.model.state_dict().items()
    )
    assert torch.equal(state, torch.get_rng_state())
    torch.rand(3)
    again = run(subject, (FIRST,), "named", 16, epochs=1, start="weights", shares=(0.5,))
    assert first.details == again.details


def test_seeds_are_averaged_before_anything_else(subject, named):
    both = run(subject, (FIRST,), named(FIRST), 32, epochs=1, seeds=2, shares=(0.5,))
    assert len(both.details["accuracy of each seed on whole texts"]) == 2
    mean = np.mean(both.details["accuracy of each seed on whole texts"])
    assert both.figures[WHOLE].mean() == pytest.approx(mean)
    assert set(np.unique(both.figures[MASKED])) <= {0, 0.5, 1}
    assert any("From 2 seeds" in note for note in both.notes)


def test_what_is_told_counts_the_trainings(subject, named):
    told = []
    run(subject, (FIRST,), named(FIRST), 16, epochs=1, tell=told.append, shares=(0.5,))
    trainings = [line for line in told if "training" in line]
    assert len(trainings) == 4 and all(f"of {4}" in line for line in trainings)
    assert "left" not in trainings[0] and "about" in trainings[1] and "left" in trainings[1]


def test_nothing_is_concluded_where_nothing_was_learned(subject, named):
    tested = texts(40, 1)  # no word decides
    found = remove_and_retrain(
        subject.ask([each.text for each in tested]),
        training=texts(40, 2),
        gold={number: number % 2 for number in range(40)},
        methods=[named(FIRST)],
        **{**FAST, "epochs": 1},
    )
    assert found.sentence.endswith("nothing can be said.")


def test_the_largest_by_size_go_first_and_what_is_gone_stays_gone():
    sizes, none = np.array([0.1, 3.0, 0.2, 2.0, 0.0]), np.zeros(5, dtype=bool)
    assert chosen(sizes, none, 0.1).tolist() == [False, True, False, False, False]
    assert chosen(sizes, none, 0.3).tolist() == [False, True, False, True, False]  # 1.5 is 2
    gone = np.array([False, False, False, False, True])
    assert chosen(sizes, gone, 0.4).tolist() == [False, True, False, False, True]
    assert chosen(sizes, gone, 0.01).tolist() == gone.tolist()
    assert chosen(np.zeros(0), np.zeros(0, dtype=bool), 0.5).tolist() == []


def test_special_tokens_are_never_masked_and_a_mask_is_no_content(subject):
    (question,) = subject.ask(["good w1 w2 w3"])
    scores = torch.tensor([[9.0, 0.0, -3.0, 2.0, 1.0, 9.0]])
    hidden = hide_more(question, none_hidden(question), scores, 0.5)
    left = reduced(question, hidden)
    assert left.inputs.tokens[0].texts == ("[CLS]", "good", "[MASK]", "[MASK]", "w3", "[SEP]")
    assert left.inputs.tokens[0].special == (True, False, True, True, False, True)
    expected = subject.encode("good [MASK] [MASK] w3").arguments["input_ids"]
    assert torch.equal(left.inputs.arguments["input_ids"], expected)


def test_areas_are_those_worked_by_hand():
    # Random falls evenly from 1 to ½; the method is at ½ from the first share on.
    x = [0.0, 0.5, 1.0]
    random, method = np.array([[1.0], [0.75], [0.5]]), np.array([[1.0], [0.5], [0.5]])
    assert area(x, random - method) == pytest.approx([0.125])
    assert area(x, random - random[-1]) == pytest.approx([0.25])
    ((found),) = relative_areas([np.array([0.1, 0.15])], np.array([0.2, 0.3]))
    assert found.mean == pytest.approx(0.5)  # the sums count, not the mean of ratios


def test_a_fresh_copy_is_drawn_by_its_seed_or_starts_from_given_weights(subject, tmp_path):
    own, new, again, other = (
        each.model.state_dict()
        for each in (
            subject,
            fresh_copy(subject, "scratch", 1),
            fresh_copy(subject, "scratch", 1),
            fresh_copy(subject, "scratch", 2),
        )
    )
    weight = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(new[weight], again[weight])
    assert not torch.equal(new[weight], own[weight]) and not torch.equal(new[weight], other[weight])
    kept = fresh_copy(subject, "weights", 1).model
    assert torch.equal(kept.state_dict()[weight], own[weight]) and kept is not subject.model
    subject.model.save_pretrained(tmp_path)
    read = fresh_copy(subject, str(tmp_path), 1).model.state_dict()
    assert all(torch.equal(read[name], own[name]) for name in own)
    with pytest.raises(UnsupportedModelError, match="cannot start from /nowhere"):
        fresh_copy(subject, "/nowhere", 1)


def test_the_rate_grows_over_a_tenth_of_the_steps_and_falls_to_zero():
    assert [rate_at(step, 20) for step in (0, 1, 2, 11, 20)] == pytest.approx([0.5, 1, 1, 0.5, 0])


def test_texts_of_several_lengths_share_a_batch_without_needless_fillers(subject):
    questions = subject.ask(["good w1", "bad w1 w2 w3 w4", "good w3 w4"])
    (batch,) = training.labelled_batches(questions, {0: 1, 1: 0, 2: 1})
    order = [text for question in questions for text in question.order]
    assert batch.labels.tolist() == [{0: 1, 1: 0, 2: 1}[text] for text in order]
    shortest = batch.rows([order.index(0), order.index(2)])
    assert shortest.arguments["input_ids"].shape == (2, 5)
    right = training.answers_right(subject, [batch])
    expected = [
        subject.predict(each)["label"][0] for each in ("good w1", "bad w1 w2 w3 w4", "good w3 w4")
    ]
    gold = ("POSITIVE", "NEGATIVE", "POSITIVE")
    assert right.tolist() == [float(expected[text] == gold[text]) for text in order]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"shares": (0.0, 0.5)}, "shares are one or more numbers between 0 and 1"),
        ({"methods": []}, "needs at least one method"),
        ({"seeds": 0}, "seeds of remove_and_retrain is 1 or more, not 0"),
        ({"epochs": 0}, "1 or more epochs"),
        ({"rate": -1.0}, "above 0"),
        ({"training": ()}, "needs texts to train on"),
        ({"gold": None}, "needs the label of every test text"),
        ({"training": [Example("w1 w2", "MAYBE")] * 2}, "2 left out: unknown label 'MAYBE'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(subject, options, problem):
    given = {"training": texts(4, 2, FIRST), "gold": {0: 1}, "methods": ["gradient"], **options}
    with pytest.raises(UsageError, match=problem):
        remove_and_retrain(subject.ask(["good w1"]), **given)


def test_unknown_names_are_refused(subject):
    given = {"training": texts(4, 2, FIRST), "gold": {0: 1}}
    with pytest.raises(UnknownNameError, match="unknown method"):
        remove_and_retrain(subject.ask(["good w1"]), methods=["gradiant"], **given)
    with pytest.raises(UnknownNameError, match="unknown form"):
        remove_and_retrain(subject.ask(["good w1"]), forms=["rekursive"], **given)


@pytest.mark.parametrize("task", ["causal lm", "token classification", "image classification"])
def test_other_tasks_are_refused_in_one_line(task):
    with pytest.raises(UnsupportedModelError, match=f"{task}.*does not$"):
        remove_and_retrain([ask(task)], training=texts(4, 2, FIRST), gold={0: 1})


@pytest.mark.slow
def test_a_trained_model_names_the_word_that_decides(subject):
    """The whole way: a model learns the word, and its own explanations remove it."""
    learner = fresh_copy(subject, "scratch", 3)
    lessons = texts(256, 2, FIRST)
    asked = learner.ask([each.text for each in lessons])
    gold = {number: NAMES.index(each.label) for number, each in enumerate(lessons)}
    plan = TrainingPlan(epochs=10, rate=0.01, rows=32)
    training.train(learner, training.labelled_batches(asked, gold), plan, 3)
    found = run(learner, (FIRST,), "integrated_gradients", 256)
    assert found.figures[OWN].mean() > 0.95
    accuracy = found.details["accuracy"]
    for form in ("plain", "recursive"):
        assert (
            accuracy[f"integrated_gradients, {form}"][2] < accuracy["random_scores, plain"][2] - 0.1
        )
        assert found.details["relative area"][f"integrated_gradients, {form}"]["low"] > 0
