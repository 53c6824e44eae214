"""Erasure against the plain model on texts changed by hand, one at a time."""

from copy import deepcopy

import numpy as np
import pytest
import tiny
import torch
from subjects import ASKED, TEXTS, arguments, plain, subject

from attlas import Subject
from attlas.catalogue import REMOVALS
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.encoding.request import Request
from attlas.removing.erasures import AnswerTable, Erasures
from attlas.removing.removal import check_removal

TASK, PICTURES = "sequence classification", "image classification"
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def erasures(task, how, texts=None):
    """The erasures of the texts of a task."""
    questions = subject(task).ask(texts or TEXTS[task], Request(**ASKED.get(task, {})))
    return Erasures(questions, how)


def content(task, ids):
    special = set(subject(task).tokenizer.all_special_ids)
    return [i for i, number in enumerate(ids[0].tolist()) if number not in special]


def some_ways(count, seed=0):
    """Sets of every size, some of them twice."""
    draw = np.random.default_rng(seed).random((6, count)) < np.linspace(0, 0.9, 6)[:, None]
    draw[:, 0] &= ~draw.all(axis=1)
    return np.concatenate([draw, draw[2:4]])


@torch.no_grad()
def says(model, given, choice, place=None):
    """The log-probability of a choice and whether it is the first one."""
    logits = model(**given).logits[0]
    row = logits if place is None else logits[place]
    return float(row.double().log_softmax(-1)[choice]), int(row.argmax()) == choice


def assert_says(found, expected):
    sure, chosen = zip(*expected, strict=True)
    np.testing.assert_allclose(found.log_probability, sure, **CLOSE)
    np.testing.assert_allclose(found.probability, np.exp(sure), **CLOSE)
    assert found.chosen.tolist() == list(chosen)


def deleted(given, places, names=("input_ids", "attention_mask", "token_type_ids")):
    length = given[names[0]].shape[1]
    keep = [i for i in range(length) if i not in places]
    return {name: value[:, keep] if name in names else value for name, value in given.items()}


def put(given, places, number, name="input_ids"):
    values = given[name].clone()
    values[0, places] = number
    return {**given, name: values}


def changed(task, given, places, how):
    """The arguments without some tokens, as each operator is defined."""
    tokenizer = subject(task).tokenizer
    if how == "delete":
        return deleted(given, places)
    if how == "mask":
        return put(given, places, tokenizer.mask_token_id)
    closed = put(given, places, 0, "attention_mask")
    return put(closed, places, tokenizer.pad_token_id)


@pytest.mark.parametrize("how", ["delete", "mask", "pad"])
@pytest.mark.parametrize("task", [TASK, "next sentence"])
def test_classifiers(task, how):
    found = erasures(task, how)
    ways = {}
    for text, words in enumerate(TEXTS[task]):
        given = arguments(task, words)
        places = content(task, given["input_ids"])
        assert found.content(text) == places
        ways[text] = some_ways(len(places), text)
    found.ask(ways)
    for text, words in enumerate(TEXTS[task]):
        given = arguments(task, words)
        with torch.no_grad():
            choice = int(plain(task)(**given).logits[0].argmax())
        places = np.array(found.content(text))
        expected = [
            says(plain(task), changed(task, given, places[way].tolist(), how), choice)
            for way in ways[text]
        ]
        assert_says(found.of(text, ways[text]), expected)
        assert_says(found.whole(text), [says(plain(task), given, choice)])
        assert len({sure for sure, _ in expected}) > 3


@pytest.mark.parametrize("how", ["delete", "mask"])
def test_next_token(how):
    task = "causal lm"
    found = erasures(task, how)
    for text, words in enumerate(TEXTS[task]):
        given = arguments(task, words)
        with torch.no_grad():
            choice = int(plain(task)(**given).logits[0, -1].argmax())
        ways = some_ways(given["input_ids"].shape[1], text)
        places = np.arange(ways.shape[1])
        expected = [
            says(plain(task), changed(task, given, places[way].tolist(), how), choice, -1)
            for way in ways
        ]
        assert_says(found.of(text, ways), expected)


@pytest.mark.parametrize("how", ["delete", "mask"])
def test_encoder_decoder_of_source_and_prefix(how):
    task = "sequence to sequence"
    found = erasures(task, how)
    mask = subject(task).tokenizer.mask_token_id
    for text, words in enumerate(TEXTS[task]):
        given = arguments(task, words, ASKED[task]["prefix"])
        with torch.no_grad():
            choice = int(plain(task)(**given).logits[0, -1].argmax())
        source = content(task, given["input_ids"])
        prefix = content(task, given["decoder_input_ids"])
        ways = some_ways(len(source) + len(prefix), text)
        expected = []
        for way in ways:
            first = np.array(source)[way[: len(source)]].tolist()
            second = np.array(prefix)[way[len(source) :]].tolist()
            if how == "delete":
                less = deleted(given, first)
                less = deleted(less, second, ("decoder_input_ids",))
            else:
                less = put(put(given, first, mask), second, mask, "decoder_input_ids")
            expected.append(says(plain(task), less, choice, -1))
        assert_says(found.of(text, ways), expected)


def test_a_string_of_tokens_of_which_none_is_removed():
    task, words = "causal lm", TEXTS["causal lm"][1]
    tokenizer = subject(task).tokenizer
    prompt, chain = tokenizer(words)["input_ids"], tokenizer(" dog was")["input_ids"]
    found = Erasures(subject(task).ask([words], Request(target=" dog was")), "delete")
    assert found.content(0) == list(range(len(prompt)))
    ways = some_ways(len(prompt))
    expected = []
    for way in ways:
        ids, total, chosen = [i for i, gone in zip(prompt, way, strict=True) if not gone], 0.0, True
        for token in chain:
            sure, first = says(plain(task), {"input_ids": torch.tensor([ids])}, token, -1)
            ids, total, chosen = [*ids, token], total + sure, chosen and first
        expected.append((total, chosen))
    assert_says(found.of(0, ways), expected)


def embedded_with_zeros(task, given, places, name, argument):
    """The arguments with the word vectors in place of the ids, zero at some places."""
    vectors = plain(task).get_input_embeddings()(given[name]).detach().clone()
    vectors[0, places] = 0
    rest = {key: value for key, value in given.items() if key != name}
    return {**rest, argument: vectors}


@pytest.mark.parametrize("task", [TASK, "causal lm"])
def test_zero_embedding(task):
    found, place = erasures(task, "zero_embedding"), None if task == TASK else -1
    for text, words in enumerate(TEXTS[task]):
        given = arguments(task, words)
        places = np.array(found.content(text))
        with torch.no_grad():
            row = plain(task)(**given).logits[0]
        choice = int((row if place is None else row[place]).argmax())
        ways = some_ways(len(places), text)
        expected = []
        for way in ways:
            chosen = places[way].tolist()
            less = embedded_with_zeros(task, given, chosen, "input_ids", "inputs_embeds")
            expected.append(says(plain(task), less, choice, place))
        assert_says(found.of(text, ways), expected)


def test_zero_embedding_of_source_and_prefix():
    task = "sequence to sequence"
    found, words = erasures(task, "zero_embedding"), TEXTS[task][0]
    given = arguments(task, words, ASKED[task]["prefix"])
    with torch.no_grad():
        choice = int(plain(task)(**given).logits[0, -1].argmax())
    source = content(task, given["input_ids"])
    prefix = content(task, given["decoder_input_ids"])
    ways = some_ways(len(source) + len(prefix))
    expected = []
    for way in ways:
        first = np.array(source)[way[: len(source)]].tolist()
        second = np.array(prefix)[way[len(source) :]].tolist()
        less = embedded_with_zeros(task, given, first, "input_ids", "inputs_embeds")
        names = ("decoder_input_ids", "decoder_inputs_embeds")
        expected.append(
            says(plain(task), embedded_with_zeros(task, less, second, *names), choice, -1)
        )
    assert_says(found.of(0, ways), expected)


def barred(length, places, causal=False):
    """What is added to scores so that some keys are closed to every query but their own."""
    closed = torch.zeros(length, length, dtype=torch.bool)
    closed[:, places] = True
    closed &= ~torch.eye(length, dtype=torch.bool)
    if causal:
        closed |= torch.ones(length, length, dtype=torch.bool).triu(1)
    least = torch.finfo(torch.float32).min
    return torch.zeros(1, 1, length, length).masked_fill(closed, least)


@pytest.mark.parametrize("task", [TASK, "causal lm"])
def test_knock_out_is_a_mask_over_keys_in_every_layer(task):
    found, place = erasures(task, "knock_out"), None if task == TASK else -1
    for text, words in enumerate(TEXTS[task]):
        given = arguments(task, words)
        length = given["input_ids"].shape[1]
        with torch.no_grad():
            row = plain(task)(**given).logits[0]
        choice = int((row if place is None else row[place]).argmax())
        places = np.array(found.content(text))
        ways = some_ways(len(places), text)
        expected = []
        for way in ways:
            closed = barred(length, places[way].tolist(), causal=task != TASK)
            expected.append(says(plain(task), {**given, "attention_mask": closed}, choice, place))
        assert_says(found.of(text, ways), expected)
        assert np.ptp(found.of(text, ways).log_probability) > 1e-4


def test_knock_out_of_source_and_prefix():
    """Nothing reads what a closed token becomes, so it is as if a mask closed it to itself too."""
    task = "sequence to sequence"
    found, words = erasures(task, "knock_out"), TEXTS[task][0]
    given = arguments(task, words, ASKED[task]["prefix"])
    given["decoder_attention_mask"] = torch.ones_like(given["decoder_input_ids"])
    with torch.no_grad():
        choice = int(plain(task)(**given).logits[0, -1].argmax())
    source = content(task, given["input_ids"])
    prefix = content(task, given["decoder_input_ids"])
    ways = some_ways(len(source) + len(prefix))
    ways[:, -1] = False  # the last of the prefix is where the next token is read
    expected = []
    for way in ways:
        first = np.array(source)[way[: len(source)]].tolist()
        second = np.array(prefix)[way[len(source) :]].tolist()
        less = put(given, first, 0, "attention_mask")
        less = put(less, second, 0, "decoder_attention_mask")
        expected.append(says(plain(task), less, choice, -1))
    assert_says(found.of(0, ways), expected)
    assert np.ptp(found.of(0, ways).log_probability) > 1e-4


@pytest.mark.parametrize("how", REMOVALS)
def test_texts_in_one_batch_do_not_touch_each_other(how, monkeypatch):
    together, alone = erasures(TASK, how), erasures(TASK, how)
    ways = {text: some_ways(len(together.content(text)), text) for text in range(3)}
    together.ask(ways)
    monkeypatch.setattr("attlas.models.asking.memory._TOKENS", {"cpu": 1})
    monkeypatch.setattr("attlas.removing.erasures.MOST_CELLS", 1)
    alone.ask(ways)
    for text, sets in ways.items():
        found, expected = together.of(text, sets), alone.of(text, sets)
        np.testing.assert_allclose(found.log_probability, expected.log_probability, **CLOSE)


def count_rows(monkeypatch):
    """How many rows the model was run on, one entry for each batch."""
    rows, run = [], Subject.run

    def counting(self, given, *rest):
        rows.append(len(given["input_ids"]))
        return run(self, given, *rest)

    monkeypatch.setattr(Subject, "run", counting)
    return rows


def test_nothing_is_asked_twice(monkeypatch):
    found = erasures(TASK, "delete")
    rows = count_rows(monkeypatch)
    ways = {text: some_ways(len(found.content(text)), text) for text in range(3)}
    found.ask(ways)
    # Before all else, each whole text once, to learn which answers are likely.
    total = 3 + sum(len(np.unique(each, axis=0)) for each in ways.values())
    assert sum(rows) == total
    before = found.of(0, ways[0])
    found.ask(ways)
    reversed_ = found.of(0, ways[0][::-1])
    assert reversed_.log_probability.tolist() == before.log_probability[::-1].tolist()
    assert sum(rows) == total
    found.forget(0)
    found.of(0, ways[0][:1])
    assert rows[-1] == 1


def test_a_few_bytes_for_each_answer():
    answers, count = AnswerTable(), 4000
    ways = np.unique(np.random.default_rng(0).random((count, 40)) < 0.5, axis=0)
    sure = np.linspace(-5, -1, len(ways))
    for part in np.split(np.random.default_rng(1).permutation(len(ways)), [100, 2000]):
        columns = (sure[part], sure[part] > -2, np.exp(sure[part]))
        answers.add(ways[part], np.stack(columns, axis=1).astype(np.float32))
    found = answers.of(ways)
    np.testing.assert_allclose(found.log_probability, sure, rtol=1e-6)
    np.testing.assert_allclose(found.distribution[:, 0], np.exp(sure), rtol=1e-6)
    assert (found.chosen == (sure > -2)).all()
    assert len(answers.unknown(np.concatenate([ways[:5], ~ways[:1], ~ways[:1]]))) == 1
    assert (
        sum(each.nbytes for each in vars(answers).values()) <= 17 * count
    )  # 5 for the set, 12 for the answer


def test_rows_of_one_length_from_any_text_share_a_batch(monkeypatch):
    found = erasures(TASK, "delete")
    counts = [len(found.content(text)) for text in range(3)]
    rows = count_rows(monkeypatch)
    left = min(counts) - 1
    found.ask({text: np.arange(n)[None] < n - left for text, n in enumerate(counts)})
    assert rows[-1] == 3


def test_pictures_are_masked():
    found = erasures(PICTURES, "mask")
    ways = some_ways(len(found.content(0)))
    pixels = arguments(PICTURES, TEXTS[PICTURES][0])["pixel_values"]
    side = int(len(found.content(0)) ** 0.5)
    patch = pixels.shape[-1] // side
    with torch.no_grad():
        choice = int(plain(PICTURES)(pixels).logits[0].argmax())
    expected = []
    for way in ways:
        covered = torch.from_numpy(way.reshape(side, side))
        covered = covered.repeat_interleave(patch, 0).repeat_interleave(patch, 1)
        blank = {"pixel_values": pixels.masked_fill(covered, 0)}
        expected.append(says(plain(PICTURES), blank, choice))
    assert_says(found.of(0, ways), expected)


@pytest.mark.parametrize(
    ("task", "how", "message"),
    [
        (PICTURES, "delete", "tied to places"),
        ("masked lm", "delete", "tied to places"),
        (PICTURES, "pad", "reads pictures"),
        (PICTURES, "zero_embedding", "reads pictures"),
        (PICTURES, "knock_out", "reads pictures"),
        ("causal lm", "pad", "read at its last token"),
        ("sequence to sequence", "pad", "read at its last token"),
        ("regression", "mask", "a value"),
    ],
)
def test_what_cannot_be_done_is_refused(task, how, message):
    with pytest.raises(UsageError, match=message):
        erasures(task, how)


def test_an_unknown_operator():
    with pytest.raises(UnknownNameError, match="did you mean 'delete'"):
        erasures(TASK, "deletion")


def test_no_token_to_pad_with():
    model, shared = tiny.subject_parts(TASK)
    tokenizer = deepcopy(shared)
    tokenizer.pad_token = None
    with pytest.raises(UsageError, match="no token to pad with"):
        check_removal(Subject(model, tokenizer), "pad")


def test_a_decoder_that_reads_the_text_again_is_not_knocked_out():
    parts = tiny.text_subject("T5", "ForSequenceClassification", "word_level")
    with pytest.raises(UnsupportedModelError, match="shifted by one"):
        check_removal(Subject(*parts), "knock_out")


def test_nothing_left_of_a_text_without_special_tokens_has_no_answer():
    found = erasures("causal lm", "delete")
    everything = np.ones((2, len(found.content(1))), dtype=bool)
    everything[1, 0] = False
    answers = found.of(1, everything)
    assert np.isnan(answers.log_probability).tolist() == [True, False]
    assert np.isnan(answers.distribution).any(axis=1).tolist() == [True, False]
    alone = found.of(0, np.ones((1, len(found.content(0))), dtype=bool))
    assert np.isnan(alone.distribution).all()


def test_a_way_over_too_few_tokens():
    found = erasures(TASK, "delete")
    with pytest.raises(UsageError, match="over its 5 content tokens, not 2"):
        found.of(1, np.ones((1, 2), dtype=bool))
    with pytest.raises(UsageError, match="unknown text 7"):
        found.ask({7: np.ones((1, 2), dtype=bool)})


@pytest.mark.parametrize("how", REMOVALS)
def test_rows_filled_up_to_share_a_batch_say_the_same(how, monkeypatch):
    packed, plain_ones = erasures(TASK, how), erasures(TASK, how)
    ways = {text: some_ways(len(packed.content(text)), text) for text in range(3)}
    rows = count_rows(monkeypatch)
    plain_ones.ask(ways)
    apart = len(rows)
    rows.clear()
    monkeypatch.setattr("attlas.removing.erasures.NEAR", {"cpu": 8})
    packed.whole(0)  # tries whether filling up changes anything
    rows.clear()
    packed.ask(ways)
    assert len(rows) < apart
    for text, sets in ways.items():
        found, expected = packed.of(text, sets), plain_ones.of(text, sets)
        np.testing.assert_allclose(found.log_probability, expected.log_probability, **CLOSE)
        assert (found.chosen == expected.chosen).all()


@pytest.mark.parametrize("how", ["delete", "mask"])
def test_the_distribution_of_a_classifier_is_the_models(how):
    found = erasures(TASK, how)
    for number, text in enumerate(TEXTS[TASK]):
        given = arguments(TASK, text)
        places = content(TASK, given["input_ids"])
        ways = some_ways(len(places), number)
        asked = found.of(number, ways)
        for way, row in zip(ways, asked.distribution, strict=True):
            gone = [place for place, away in zip(places, way, strict=True) if away]
            with torch.no_grad():
                logits = plain(TASK)(**changed(TASK, given, gone, how)).logits[0]
            expected = sorted(logits.softmax(-1).tolist(), reverse=True)
            assert sorted(row.tolist(), reverse=True)[: len(expected)] == pytest.approx(
                expected, abs=1e-5
            )
            assert row.sum() == pytest.approx(1, abs=1e-5)


def test_of_many_answers_the_likeliest_are_told_apart_and_the_rest_is_one(monkeypatch):
    monkeypatch.setattr("attlas.removing.pooling.MOST_OPTIONS", 4)
    found = erasures("causal lm", "delete")
    text = TEXTS["causal lm"][0]
    asked = found.whole(0).distribution[0]
    with torch.no_grad():
        logits = plain("causal lm")(**arguments("causal lm", text)).logits[0, -1]
    top = logits.softmax(-1).topk(4).values.tolist()
    assert asked.tolist() == pytest.approx([*top, 1 - sum(top)], abs=1e-5)
