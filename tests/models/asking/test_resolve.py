"""From what is asked for to a target, task by task, against the plain model's own output."""

import numpy as np
import pytest
import torch
from subjects import ASKED, LABELLED, TEXTS, arguments, logits, plain, subject
from tiny import GPT2_SHAPE, TASKS, text_subject
from tiny_tokenizers import KINDS, SENTENCE_SPECIALS
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

import attlas
from attlas import Target
from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking import resolve
from attlas.models.encoding.request import Request

CLOSE = 1e-5
WHOLE = ["sequence classification", "multi-label", "next sentence", "image classification"]


def resolved(task, text=None, **asked):
    """The target, the best choices and the notes, and each quantity of the target."""
    given = TEXTS[task][0] if text is None else text
    (question,) = subject(task).ask([given], Request(**{**ASKED.get(task, {}), **asked}))
    return (
        question.targets[0],
        question.predictions[0],
        question.notes(0),
        question.known_scores[0],
    )


def output(task, text=None):
    given = TEXTS[task][0] if text is None else text
    return logits(task, arguments(task, given, **ASKED.get(task, {})))


def probabilities(task, row):
    return row.sigmoid() if task == "multi-label" else row.softmax(-1)


# Classes


@pytest.mark.parametrize("task", WHOLE)
def test_the_default_is_what_the_model_predicts(task):
    target, prediction, _, found = resolved(task)
    row = output(task)
    best = int(row.argmax())
    assert target.name == subject(task).labels[best] == prediction[0]["label"]
    assert found["logit"] == pytest.approx(float(row[best]), abs=CLOSE)
    sure = probabilities(task, row)
    assert found["probability"] == pytest.approx(float(sure[best]), abs=CLOSE)
    assert [choice["probability"] for choice in prediction] == pytest.approx(
        sorted(sure.tolist(), reverse=True), abs=CLOSE
    )


@pytest.mark.parametrize("task", WHOLE)
def test_a_class_by_number_by_label_and_by_numpy_number(task):
    row, labels = output(task), subject(task).labels
    for index, label in enumerate(labels):
        for wanted in (index, label, label.lower(), label.upper(), str(index), np.int64(index)):
            target, _, _, found = resolved(task, target=wanted)
            assert target.name == label
            assert found["logit"] == pytest.approx(float(row[index]), abs=CLOSE)
            sure = float(probabilities(task, row)[index])
            assert found["probability"] == pytest.approx(sure, abs=CLOSE)


@pytest.mark.parametrize("task", WHOLE)
def test_a_contrast_of_classes(task):
    row = output(task)
    target, _, _, found = resolved(task, target=0, contrast=subject(task).labels[1])
    assert (target.name, target.contrast_name) == tuple(subject(task).labels[:2])
    assert found["logit"] == pytest.approx(float(row[0] - row[1]), abs=CLOSE)
    sure = probabilities(task, row)
    assert found["probability"] == pytest.approx(float(sure[0] - sure[1]), abs=CLOSE)


def test_a_regression_has_a_value():
    target, prediction, _, found = resolved("regression")
    value = float(output("regression")[0])
    assert found["logit"] == found["probability"] == pytest.approx(value, abs=CLOSE)
    assert target.quantity("probability") == "value"
    assert prediction == (
        {"label": "SCORE", "probability": None, "value": pytest.approx(value, abs=CLOSE)},
    )


@pytest.mark.parametrize("task", LABELLED)
def test_an_unknown_label_suggests_the_nearest(task):
    label = subject(task).labels[-1]
    with pytest.raises(UnknownNameError, match=f"unknown label '{label}x': did you mean '{label}'"):
        resolved(task, target=f"{label}x")
    with pytest.raises(UnknownNameError, match="did you mean"):
        resolved(task, target=0, contrast=f"{label}x")


@pytest.mark.parametrize("wanted", [3, -1, 99])
def test_an_unknown_class_number(wanted):
    with pytest.raises(UsageError, match=f"unknown class {wanted}: this model has 0 to 2"):
        resolved("sequence classification", target=wanted)


@pytest.mark.parametrize("wanted", [True, 1.5, ["POSITIV"]])
def test_what_names_no_class(wanted):
    with pytest.raises(UnknownNameError, match="unknown label"):
        resolved("sequence classification", target=wanted)


def test_a_contrast_with_itself():
    with pytest.raises(UsageError, match="the contrast is the target itself, 'NEUTRAL'"):
        resolved("sequence classification", target="neutral", contrast=1)


# Labels of tokens


def content(task, text=None):
    ids = arguments(task, TEXTS[task][0] if text is None else text)["input_ids"][0].tolist()
    special = set(subject(task).tokenizer.all_special_ids)
    return [place for place, number in enumerate(ids) if number not in special]


def test_the_most_certain_label_that_is_one():
    task = "token classification"
    for text in TEXTS[task]:
        sure = output(task, text).softmax(-1)
        choices = [(float(sure[i, j]), i, j) for i in content(task, text) for j in range(1, 5)]
        _, place, choice = max(choices)
        target, _, notes, found = resolved(task, text)
        assert target.position == place
        best = int(sure[place].argmax())
        assert target.name == subject(task).labels[best]
        assert found["probability"] == pytest.approx(float(sure[place, best]), abs=CLOSE)
        assert f"read at token {place}" in notes[0]
        assert choice == best or best == 0


def test_a_label_is_read_where_it_is_most_certain():
    task = "token classification"
    sure = output(task).softmax(-1)
    for index, label in enumerate(subject(task).labels):
        place = max(content(task), key=lambda i: float(sure[i, index]))
        target, _, _, found = resolved(task, target=label)
        assert (target.name, target.position) == (label, place)
        assert found["probability"] == pytest.approx(float(sure[place, index]), abs=CLOSE)


def test_a_label_at_a_position():
    task = "token classification"
    rows = output(task)
    for position in (0, 2, len(rows) - 1, -1, -len(rows)):
        target, _, notes, found = resolved(task, position=position, target="B-LOC", contrast="O")
        assert target.position == position % len(rows)
        row = rows[position]
        assert found["logit"] == pytest.approx(float(row[3] - row[0]), abs=CLOSE)
        sure = row.softmax(-1)
        assert found["probability"] == pytest.approx(float(sure[3] - sure[0]), abs=CLOSE)
        assert notes == ()


# Masks


def test_what_stands_at_the_mask():
    task = "masked lm"
    for text in TEXTS[task]:
        ids = arguments(task, text)["input_ids"][0].tolist()
        place = ids.index(subject(task).tokenizer.mask_token_id)
        row = output(task, text)[place]
        target, prediction, _, found = resolved(task, text)
        best = int(row.argmax())
        assert target.position == place
        assert target.name == prediction[0]["label"] == subject(task).tokenizer.decode([best])
        assert found["logit"] == pytest.approx(float(row[best]), abs=CLOSE)
        assert found["probability"] == pytest.approx(float(row.softmax(-1)[best]), abs=CLOSE)


def test_a_token_at_the_mask_against_another():
    task = "masked lm"
    tokenizer = subject(task).tokenizer
    one, other = (tokenizer.convert_tokens_to_ids(word) for word in ("and", "the"))
    assert tokenizer.unk_token_id not in (one, other)
    ids = arguments(task, TEXTS[task][0])["input_ids"][0].tolist()
    row = output(task)[ids.index(tokenizer.mask_token_id)]
    for wanted in ("and", one, np.int64(one)):
        target, _, _, found = resolved(task, target=wanted, contrast="the")
        assert (target.name, target.contrast_name) == ("and", "the")
        assert found["logit"] == pytest.approx(float(row[one] - row[other]), abs=CLOSE)


def test_the_first_of_several_masks():
    target, _, notes, _ = resolved("masked lm", "the [MASK] was [MASK]")
    assert target.position == 2
    assert notes == ("read at the first of 2 masks",)


def test_another_position_than_the_mask():
    task = "masked lm"
    target, _, _, found = resolved(task, "a cat sat", position=2)
    row = output(task, "a cat sat")[2]
    assert found["logit"] == pytest.approx(float(row.max()), abs=CLOSE)
    assert target.position == 2


def test_no_mask():
    with pytest.raises(UsageError, match=r"no \[MASK\] to fill in: add one, or give a position"):
        resolved("masked lm", "a cat sat")


def test_more_than_one_token_for_a_mask():
    with pytest.raises(UsageError, match="is 2 tokens, but one is needed here"):
        resolved("masked lm", target="the and")


@pytest.mark.parametrize("task", ["masked lm", "token classification"])
@pytest.mark.parametrize("position", [99, -99])
def test_position_out_of_range(task, position):
    with pytest.raises(UsageError, match=f"unknown position {position}: the input has 0 to"):
        resolved(task, position=position)


@pytest.mark.parametrize(
    "task", [t for t in TASKS if t not in ("masked lm", "token classification")]
)
def test_a_position_where_there_is_none(task):
    with pytest.raises(UsageError, match="a position is for token classification and masked lm"):
        resolved(task, position=1)


@pytest.mark.parametrize("task", [t for t in TASKS if t != "sequence to sequence"])
def test_a_prefix_where_there_is_none(task):
    with pytest.raises(UsageError, match="a prefix is for an encoder–decoder that writes"):
        resolved(task, prefix="Das Haus")


# Answers


def best_span(task, text, longest=30):
    encoded = subject(task).tokenizer(*text)
    inside = [i for i, sequence in enumerate(encoded.sequence_ids(0)) if sequence == 1]
    start, end = output(task, text)
    spans = [(i, j) for i in inside for j in inside if i <= j < i + longest]
    return max(spans, key=lambda span: float(start[span[0]] + end[span[1]])), encoded


def test_the_best_answer_is_found_by_force():
    task = "question answering"
    for text in TEXTS[task]:
        (first, last), encoded = best_span(task, text)
        shown = text[1][encoded.token_to_chars(first).start : encoded.token_to_chars(last).end]
        target, prediction, _, found = resolved(task, text)
        start, end = output(task, text)
        sure = float(start.softmax(-1)[first] * end.softmax(-1)[last])
        assert target.name == prediction[0]["label"] == shown
        assert found["logit"] == pytest.approx(float(start[first] + end[last]), abs=CLOSE)
        assert found["probability"] == pytest.approx(sure, abs=CLOSE)
        assert prediction[0]["probability"] == pytest.approx(sure, abs=CLOSE)


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_the_best_answer_is_not_too_long(longest, monkeypatch):
    task = "question answering"
    monkeypatch.setattr(resolve, "LONGEST_ANSWER", longest)
    for text in TEXTS[task]:
        (first, last), _ = best_span(task, text, longest)
        assert resolved(task, text)[0].picks == ((-2, first), (-1, last))


@pytest.mark.parametrize("answer", ["film", "not good", "the film was not good", "il"])
def test_an_answer_by_its_text(answer):
    task = "question answering"
    text = TEXTS[task][0]
    encoded = subject(task).tokenizer(*text)
    at = text[1].index(answer)
    first = encoded.char_to_token(0, at, sequence_index=1)
    last = encoded.char_to_token(0, at + len(answer) - 1, sequence_index=1)
    target, _, _, found = resolved(task, target=answer)
    start, end = output(task)
    assert target.picks == ((-2, first), (-1, last))
    assert found["logit"] == pytest.approx(float(start[first] + end[last]), abs=CLOSE)


def test_an_answer_against_another():
    task = "question answering"
    target, _, _, found = resolved(task, target="film", contrast="good")
    one, other = (resolved(task, target=word)[3] for word in ("film", "good"))
    assert (target.name, target.contrast_name) == ("film", "good")
    for of in ("logit", "probability"):
        assert found[of] == pytest.approx(one[of] - other[of], abs=CLOSE)


@pytest.mark.parametrize("answer", ["elephant", "who wrote", "", 3])
def test_an_answer_that_is_not_there(answer):
    with pytest.raises(UsageError, match="is not in the context"):
        resolved("question answering", target=answer)


def test_an_answer_that_was_cut():
    text = ("who", "the cat sat on the mat and " * 20 + "elephant")
    with pytest.raises(UsageError, match="'elephant' was cut from the context"):
        resolved("question answering", text, target="elephant", truncate=True)


# Next tokens


def test_the_next_token():
    task = "causal lm"
    row = output(task)[-1]
    target, prediction, _, found = resolved(task)
    best = int(row.argmax())
    assert target.name == prediction[0]["label"] == subject(task).tokenizer.decode([best])
    assert found["logit"] == pytest.approx(float(row[best]), abs=CLOSE)
    assert found["probability"] == pytest.approx(float(row.softmax(-1)[best]), abs=CLOSE)


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_a_token_by_number_and_as_the_tokenizer_writes_it(task):
    tokenizer, row = subject(task).tokenizer, output(task)[-1]
    written = "Ġthe" if task == "causal lm" else "▁the"
    number = tokenizer.convert_tokens_to_ids(written)
    for wanted in (number, np.int32(number), written):
        target, _, _, found = resolved(task, target=wanted)
        assert target.picks == ((-1, number),)
        assert found["logit"] == pytest.approx(float(row[number]), abs=CLOSE)


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_a_token_against_another(task):
    tokenizer, row = subject(task).tokenizer, output(task)[-1]
    one, other = (
        tokenizer(word, add_special_tokens=False)["input_ids"] for word in (" the", " not")
    )
    assert len(one) == len(other) == 1
    _, _, _, found = resolved(task, target=" the", contrast=" not")
    assert found["logit"] == pytest.approx(float(row[one[0]] - row[other[0]]), abs=CLOSE)
    sure = row.softmax(-1)
    expected = float(sure[one[0]] - sure[other[0]])
    assert found["probability"] == pytest.approx(expected, abs=CLOSE)


def test_target_and_contrast_are_cut_as_they_follow_the_prompt():
    """A tokenizer that writes a space before every text has other ids for a string alone."""
    raw = KINDS["unigram"]()
    raw.post_processor = TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, **SENTENCE_SPECIALS)
    asked = attlas.Subject(
        text_subject("GPT2", "LMHeadModel", "unigram", **GPT2_SHAPE)[0], tokenizer
    )
    request = Request(target="d", contrast="c")
    (question,) = asked.ask(["the film was not"], request)
    one, other = (tokenizer(f"the film was not{end}")["input_ids"][-1] for end in "dc")
    assert tokenizer("d")["input_ids"] != [one] and tokenizer("c")["input_ids"] != [other]
    assert question.targets[0].picks == ((-1, one),)
    assert question.targets[0].contrast == ((-1, other),)


@torch.no_grad()
def one_at_a_time(task, given, name, chain):
    """The log-probability of some tokens, each fed after it was asked for."""
    total, given = 0.0, dict(given)
    for token in chain:
        row = plain(task)(**given).logits[0, -1]
        total += float(row.log_softmax(-1)[token])
        given[name] = torch.cat([given[name], torch.tensor([[token]])], dim=1)
        if name == "input_ids":
            given["attention_mask"] = torch.ones_like(given[name])
    return total


@pytest.mark.parametrize(
    ("task", "name"), [("causal lm", "input_ids"), ("sequence to sequence", "decoder_input_ids")]
)
def test_a_string_of_tokens(task, name):
    tokenizer = subject(task).tokenizer
    chain = tokenizer(text_target=" the dog lay", add_special_tokens=False)["input_ids"]
    assert len(chain) > 2
    target, prediction, notes, found = resolved(task, target=" the dog lay")
    given = arguments(task, TEXTS[task][0], **ASKED.get(task, {}))
    expected = one_at_a_time(task, given, name, chain)
    assert found["logit"] == found["probability"] == pytest.approx(expected, abs=1e-4)
    assert target.quantity("probability") == "log-probability"
    assert notes[-1] == f"the sum of the log-probabilities of {len(chain)} tokens"
    first = output(task)[-1].softmax(-1)
    assert prediction[0]["probability"] == pytest.approx(float(first.max()), abs=CLOSE)


def test_a_target_is_cut_as_it_follows_the_prompt():
    task, tokenizer = "causal lm", subject("causal lm").tokenizer
    prompt, target = "The cat", " sat on the mat"
    whole = tokenizer(prompt + target)["input_ids"]
    count = len(tokenizer(prompt)["input_ids"])
    found, *_ = resolved(task, prompt, target=target)
    assert [choice for _, choice in found.picks] == whole[count:]


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_a_contrast_needs_one_token(task):
    with pytest.raises(UsageError, match="a contrast needs a target of one token"):
        resolved(task, target=" the dog", contrast=" not")
    with pytest.raises(UsageError, match="tokens, but one is needed here"):
        resolved(task, target=" the", contrast=" the dog")


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence", "masked lm"])
@pytest.mark.parametrize("wanted", [1.5, "", True, [1.5, 2]])
def test_what_is_no_token(task, wanted):
    with pytest.raises(UsageError, match="a target is a string or a token id, not"):
        resolved(task, target=wanted)


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence", "masked lm"])
@pytest.mark.parametrize("wanted", [-1, 10**6])
def test_a_token_id_that_is_not_there(task, wanted):
    with pytest.raises(UsageError, match=f"unknown token id {wanted}: there are 0 to"):
        resolved(task, target=wanted)


# Targets of one's own


def test_a_target_of_ones_own():
    task = "sequence classification"
    own = Target("either end", ((-1, 0), (-1, 2)))
    target, prediction, _, found = resolved(task, target=own)
    row = output(task)
    assert target is own
    assert found["logit"] == pytest.approx(float(row[0] + row[2]), abs=CLOSE)
    assert prediction == resolved(task)[1]


@pytest.mark.parametrize("task", ["causal lm", "sequence to sequence"])
def test_a_target_of_ones_own_before_the_last_place(task):
    rows = output(task)
    own = Target("two places", ((-3, 7), (-1, 9)), chained=True)
    _, prediction, _, found = resolved(task, target=own)
    table = rows.log_softmax(-1)
    assert found["logit"] == pytest.approx(float(table[-3, 7] + table[-1, 9]), abs=1e-4)
    assert [c["label"] for c in prediction] == [c["label"] for c in resolved(task)[1]]
    explained = attlas.explain(
        subject(task), TEXTS[task][0], "gradient_attention", own, **ASKED.get(task, {})
    )
    assert explained.target.name == "two places"


def test_a_target_of_ones_own_that_is_not_there():
    with pytest.raises(UsageError, match="this output has 1 places of 3 choices"):
        resolved("sequence classification", target=Target("fourth", ((-1, 3),)))
