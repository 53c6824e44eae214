"""The texts of an audit: those that cannot be used are counted and listed, never lost."""

import numpy as np
import pytest
from audits import SMALLEST, TRUTH, bag_texts, small_audit
from known_models import LONGEST, WEIGHTS, bag_of_words
from subjects import TEXTS, subject

from attlas.auditing.texts import usable_texts
from attlas.data.example import Example
from attlas.data.read_examples import read_examples
from attlas.errors import UsageError
from attlas.models.encoding.request import Request

TEXTS_USED = bag_texts(4)


def usable(data, chosen=None, **asked):
    """The texts that an audit would take, the model not being asked."""
    request = Request(truncate=asked.pop("truncate", False))
    return usable_texts(chosen or bag_of_words(), read_examples(data, **asked), request, 0)


def reasons(texts):
    return {str(each.row): each.reason for each in texts.left_out}


def labelled(labels):
    return [{"text": text, "label": label} for text, label in zip(TEXTS_USED, labels, strict=False)]


def test_what_cannot_be_used_is_counted_and_listed():
    long = " ".join(["w01"] * LONGEST)
    rows = [{"text": text, "label": "positive"} for text in (*TEXTS_USED, "", "w01", long)]
    more = [{"text": "w02 w03", "label": "mixed"}, {"text": "w03 w04", "label": None}]
    data = small_audit(data=[*rows, *more], **SMALLEST).data
    assert data.texts == 4 and sum(data.left_out.values()) == 5
    found = {row.row: row.reason for row in data.left_out_rows}
    assert found["4"] == "no text"
    assert found["5"] == "fewer than two tokens that can be removed"
    assert f"{LONGEST + 2} tokens and the model takes {LONGEST}" in found["6"]
    assert found["7"] == "the model does not know the label"
    assert found["8"] == "no label, though other rows have one"
    assert set(data.left_out) == set(found.values())
    assert {row.row: row.shown for row in data.left_out_rows}["7"] == "w02 w03"


def test_a_long_list_is_counted_whole_and_listed_in_part():
    texts = [*TEXTS_USED, *sorted(WEIGHTS)[:30]]
    data = small_audit(data=texts, **SMALLEST).data
    assert data.left_out == {"fewer than two tokens that can be removed": 30}
    assert len(data.left_out_rows) == 20


def test_a_text_that_is_too_long_is_cut_where_that_is_asked_for():
    long = " ".join(["w01"] * LONGEST)
    assert list(reasons(usable([*TEXTS_USED, long]))) == ["4"]
    assert usable([*TEXTS_USED, long], truncate=True).lengths[-1] == LONGEST


@pytest.mark.parametrize("data", [["w01", "w02"], ["w01 w02"], TEXTS_USED[:1]])
def test_one_text_is_none(data):
    with pytest.raises(UsageError, match="at least 2 texts, and there are"):
        usable(data)
    with pytest.raises(UsageError, match="left out: 1 × fewer than two tokens"):
        usable(["w01", "w02 w03"])


@pytest.mark.parametrize(
    ("labels", "gold", "note"),
    [
        (["POSITIVE", "negative", "Positive", "NEGATIVE"], [1, 0, 1, 0], None),
        ([1, 0, 1, 1], [1, 0, 1, 1], "0 = NEGATIVE, 1 = POSITIVE"),
        (["1", "0", "1", "1"], [1, 0, 1, 1], "0 = NEGATIVE, 1 = POSITIVE"),
        (["three", "five", "one", "two"], None, "none of the model's"),
        ([1, 2, 3, 4], None, "none of the model's"),
        ([None] * 4, None, None),
    ],
)
def test_labels_are_read_by_name_or_by_number_or_not_at_all(labels, gold, note):
    found = usable(labelled(labels))
    assert len(found) == 4 and not found.left_out
    assert found.gold == gold
    assert any(note in each for each in found.notes) if note else len(found.notes) <= 1


def test_accuracy_is_the_share_of_texts_with_the_label_predicted():
    sums = [sum(WEIGHTS[word] for word in text.split()) for text in TEXTS_USED]
    right = ["POSITIVE" if total > 0 else "NEGATIVE" for total in sums]
    wrong = "NEGATIVE" if right[0] == "POSITIVE" else "POSITIVE"
    accuracy = small_audit(data=labelled([wrong, *right[1:]]), **SMALLEST).data.accuracy
    assert (accuracy.value, accuracy.n) == (0.75, 4)
    assert 0 < accuracy.low < 0.75 < accuracy.high < 1
    assert small_audit(data=TEXTS_USED, **SMALLEST).data.accuracy is None


def test_pairs_are_one_text_to_the_model():
    seconds = bag_texts(2, start=50)
    rows = [{"one": one, "two": two} for one, two in zip(TEXTS_USED[:2], seconds, strict=True)]
    given = {"text": "one", "pair": "two", "measures": ["comprehensiveness"], "removal": ["mask"]}
    report = small_audit(data=rows, **given)
    together = [f"{row['one']} {row['two']}" for row in rows]
    wanted = small_audit(data=together, measures=["comprehensiveness"], removal=["mask"])
    found, alone = (
        each.to_pandas().set_index("method").loc[TRUTH, "value"] for each in (report, wanted)
    )
    assert found == pytest.approx(alone, abs=1e-6)
    assert "--pair two" in report.command


def test_a_language_model_is_asked_for_its_next_token():
    report = small_audit(subject("causal lm"), TEXTS["causal lm"], **SMALLEST)
    assert report.task == "causal lm" and report.data.labels == ()
    (figure,) = [row.cells[0].figure for row in report.table.rows if row.method == "raw_attention"]
    assert figure.n == 3 and np.isfinite(figure.value)


def test_a_removal_that_cannot_be_is_said_and_the_others_are_used():
    masked = subject("masked lm"), TEXTS["masked lm"]
    report = small_audit(*masked, **{**SMALLEST, "removal": ["delete", "mask"]})
    assert list(report.verdict.bounds) == ["mask", "pad"]  # the first two that it allows
    assert any(note.startswith("delete was left out: tokens cannot be") for note in report.notes)


def test_what_has_no_probability_is_refused_with_the_reason():
    with pytest.raises(UsageError, match="it has no probability that could fall"):
        small_audit(subject("regression"), TEXTS["regression"], **SMALLEST)


def test_texts_that_belong_together_are_one_unit():
    texts = bag_texts(8)
    data = [Example(text, fields={"cluster": number // 4}) for number, text in enumerate(texts)]
    found = usable([*data, "w01 w02"])
    assert found.groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert usable(texts).groups is None
    together = small_audit(data=data, **SMALLEST)
    apart = small_audit(data=texts, **SMALLEST)
    one, other = (each.to_pandas().set_index("method") for each in (together, apart))
    assert np.allclose(one["value"], other["value"], rtol=1e-12)
    assert not np.allclose(one["low"], other["low"], rtol=1e-3)
    # Two units of texts are fewer than eight texts.
    assert together.verdict.bounds["mask"].effective_texts <= 2


def test_dear_work_is_done_on_texts_drawn_by_the_seed():
    first, again = usable(bag_texts(30)), usable(bag_texts(30))
    assert first.drawn(7) == again.drawn(7) and len(first.drawn(7)) == 7
    assert set(first.drawn(7)) < set(first.drawn(20))
    assert sorted(text for batch in first.batches(7) for text in batch) == list(range(30))
    assert set(first.batches(7)[-1]) == set(first.drawn(7))
    assert min(map(len, first.batches(2))) > 1  # one alone would have no other text to borrow from
    report = small_audit(
        data=bag_texts(6), texts_for_expensive=2, **{**SMALLEST, "methods": ["attention_flow"]}
    )
    counts = report.to_pandas().set_index("method")["n"]
    assert counts["attention_flow"] == 2 and counts["shuffled"] == 2
    assert report.verdict.texts == 6
