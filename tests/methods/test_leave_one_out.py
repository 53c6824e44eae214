"""Leave one out against tokens taken away by hand and a model called once for each."""

import pytest
import torch
from subjects import ASKED, TEXTS, arguments, logits, plain, subject
from tiny import BART_SHAPE, text_subject

import attlas
from attlas.errors import UnknownNameError, UsageError

CLASSES = ["sequence classification", "multi-label", "regression", "next sentence"]
TASK = "sequence classification"
CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def explain(task, text, **options):
    return attlas.explain(subject(task), text, "leave_one_out", **options)


def scores(task, text, **options):
    return torch.from_numpy(explain(task, text, **options).scores)


def without(given, place, names=("input_ids", "attention_mask", "token_type_ids")):
    """The arguments with one place cut out."""
    keep = [i for i in range(given[names[0]].shape[1]) if i != place]
    return {name: v[:, keep] if name in names else v for name, v in given.items()}


def masked(given, place, number, name="input_ids"):
    ids = given[name].clone()
    ids[0, place] = number
    return {**given, name: ids}


def content(task, given, name="input_ids"):
    special = set(subject(task).tokenizer.all_special_ids)
    return [i for i, number in enumerate(given[name][0].tolist()) if number not in special]


def certainty(task, row, choice):
    if task == "regression":
        return row[choice]
    return row.sigmoid()[choice] if task == "multi-label" else row.softmax(-1)[choice]


@pytest.mark.parametrize("removal", ["delete", "mask", None])
@pytest.mark.parametrize("task", CLASSES)
def test_classifiers(task, removal):
    mask = subject(task).tokenizer.mask_token_id
    for text in TEXTS[task][:2]:
        given = arguments(task, text)
        whole = logits(task, given)
        choice = int(whole.argmax())
        expected = torch.zeros(given["input_ids"].shape[1])
        for place in content(task, given):
            less = masked(given, place, mask) if removal == "mask" else without(given, place)
            left = logits(task, less)
            expected[place] = certainty(task, whole, choice) - certainty(task, left, choice)
        found = explain(task, text, removal=removal)
        torch.testing.assert_close(torch.from_numpy(found.scores), expected, **CLOSE)
        assert found.notes[-1] == f"removal: {removal or 'delete'}"


def test_special_tokens_score_zero():
    found = explain(TASK, TEXTS[TASK][0])
    for score, special in zip(found.scores, found.tokens.special, strict=True):
        assert (score == 0) == special


def test_a_contrast_is_a_difference_of_probabilities():
    given = arguments(TASK, TEXTS[TASK][0])
    expected = torch.zeros(given["input_ids"].shape[1])
    whole = logits(TASK, given).softmax(-1)
    for place in content(TASK, given):
        left = logits(TASK, without(given, place)).softmax(-1)
        expected[place] = (whole[2] - whole[0]) - (left[2] - left[0])
    found = scores(TASK, TEXTS[TASK][0], target=2, contrast=0)
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_next_token(removal):
    task, text = "causal lm", TEXTS["causal lm"][1]
    given = arguments(task, text)
    whole = logits(task, given)[-1].softmax(-1)
    choice, mask = int(whole.argmax()), subject(task).tokenizer.mask_token_id
    expected = []
    for place in range(given["input_ids"].shape[1]):
        less = masked(given, place, mask) if removal == "mask" else without(given, place)
        expected.append(whole[choice] - logits(task, less)[-1].softmax(-1)[choice])
    torch.testing.assert_close(scores(task, text, removal=removal), torch.stack(expected), **CLOSE)


def log_probability(task, ids, chain):
    """Of some tokens behind a prompt, fed one at a time."""
    total = 0.0
    for token in chain:
        given = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids))}
        total += float(logits(task, given)[-1].log_softmax(-1)[token])
        ids = [*ids, token]
    return total


def test_a_string_of_tokens():
    task, text = "causal lm", TEXTS["causal lm"][1]
    tokenizer = subject(task).tokenizer
    prompt, chain = tokenizer(text)["input_ids"], tokenizer(" dog was")["input_ids"]
    whole = log_probability(task, prompt, chain)
    expected = [
        whole - log_probability(task, prompt[:i] + prompt[i + 1 :], chain)
        for i in range(len(prompt))
    ]
    found = explain(task, text, target=" dog was")
    assert found.scores[: len(prompt)] == pytest.approx(expected, abs=1e-4)
    assert not found.scores[len(prompt) :].any(), "the target's own tokens stay"
    assert found.target.quantity == "log-probability"
    assert found.segments[len(prompt) :] == ("target",) * (len(chain) - 1)


@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_encoder_decoder(removal):
    task, text = "sequence to sequence", TEXTS["sequence to sequence"][1]
    given = arguments(task, text, ASKED[task]["prefix"])
    whole = logits(task, given)[-1].softmax(-1)
    choice, mask = int(whole.argmax()), subject(task).tokenizer.mask_token_id
    expected = []
    for names in (("input_ids", "attention_mask"), ("decoder_input_ids",)):
        part = torch.zeros(given[names[0]].shape[1])
        for place in content(task, given, names[0]):
            less = (
                masked(given, place, mask, names[0])
                if removal == "mask"
                else without(given, place, names)
            )
            part[place] = whole[choice] - logits(task, less)[-1].softmax(-1)[choice]
        expected.append(part)
    found = scores(task, text, removal=removal, **ASKED[task])
    torch.testing.assert_close(found, torch.cat(expected), **CLOSE)


def test_bart():
    model, tokenizer = text_subject("Bart", "ForConditionalGeneration", "word_level", **BART_SHAPE)
    given = dict(tokenizer("The cat sat", return_tensors="pt"))
    given["decoder_input_ids"] = torch.tensor([[model.config.decoder_start_token_id]])

    @torch.no_grad()
    def probability(arguments, choice=None):
        row = model(**arguments).logits[0, -1].softmax(-1)
        return row[int(row.argmax()) if choice is None else choice], int(row.argmax())

    whole, choice = probability(given)
    expected = [0.0, *(float(whole - probability(without(given, i), choice)[0]) for i in (1, 2, 3))]
    found = attlas.explain(
        attlas.Subject(model, tokenizer), "The cat sat", "leave_one_out", prefix=""
    )
    assert found.scores.tolist() == pytest.approx([*expected, 0.0, 0.0], abs=1e-5)


def test_patches_are_blanked():
    task, image = "image classification", TEXTS["image classification"][0]
    given = arguments(task, image)
    whole = logits(task, given).softmax(-1)
    choice = int(whole.argmax())
    expected = [0.0]
    for row in range(4):
        for column in range(4):
            pixels = given["pixel_values"].clone()
            pixels[0, :, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] = 0
            left = logits(task, {"pixel_values": pixels}).softmax(-1)
            expected.append(float(whole[choice] - left[choice]))
    assert scores(task, image).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("task", ["masked lm", "token classification", "question answering"])
def test_a_target_tied_to_a_position_is_masked(task):
    text, tokenizer = TEXTS[task][0], subject(task).tokenizer
    given, found = arguments(task, text), explain(task, text)
    whole = logits(task, given)

    def probability(output):
        if task == "question answering":
            start, end = output.log_softmax(-1)
            return float((start[span[0]] + end[span[1]]).exp())
        return float(output[found.target.position].softmax(-1)[choice])

    if task == "question answering":
        spans = [(i, j) for i in range(len(found.tokens)) for j in range(i, len(found.tokens))]
        span = next(s for s in spans if span_text(found, *s) == found.target.name)
    else:
        choice = int(whole[found.target.position].argmax())
    expected = torch.zeros(len(found.tokens))
    for place in content(task, given):
        less = masked(given, place, tokenizer.mask_token_id)
        expected[place] = probability(whole) - probability(logits(task, less))
    torch.testing.assert_close(torch.from_numpy(found.scores), expected, **CLOSE)


def span_text(found, first, last):
    if found.segments[first] != "context" or found.tokens.offsets[last] is None:
        return None
    start, end = found.tokens.offsets[first], found.tokens.offsets[last]
    return start and found.tokens.sources["context"][start[0] : end[1]]


@pytest.mark.parametrize("task", ["masked lm", "image classification"])
def test_what_is_tied_to_places_cannot_be_deleted(task):
    with pytest.raises(UsageError, match="tied to places: use removal='mask'"):
        explain(task, TEXTS[task][0], removal="delete")


def test_unknown_removal():
    with pytest.raises(UnknownNameError, match=r"did you mean 'delete'.*delete, mask"):
        explain(TASK, "a cat", removal="deleted")


@pytest.mark.parametrize("target", [None, " dog was"])
def test_the_only_token_is_masked_as_nothing_would_be_left(target):
    found = explain("causal lm", "a", target=target)
    assert "removal: mask" in found.notes
    assert found.scores[0] != 0
    with pytest.raises(UsageError, match="nothing would be left of the text"):
        explain("causal lm", "a", target=target, removal="delete")


def test_nothing_to_remove():
    tokenizer = subject(TASK).tokenizer
    ids = [tokenizer.cls_token_id, tokenizer.sep_token_id]
    assert explain(TASK, ids).scores.tolist() == [0, 0]


def test_does_not_depend_on_how_many_are_asked_at_once(monkeypatch):
    whole = scores(TASK, TEXTS[TASK][0])
    monkeypatch.setattr("attlas.models.asking.memory._TOKENS", {"cpu": 1})
    torch.testing.assert_close(scores(TASK, TEXTS[TASK][0]), whole, **CLOSE)
    assert not plain(TASK).training
