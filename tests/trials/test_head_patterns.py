"""head_patterns: heads whose work is known are found, and rows that nothing reads do not count."""

import numpy as np
import pytest
import subjects
import torch
from known_models import copies_attended
from subjects import OTHER, SHORT

import attlas
from attlas.data.generated.recall import generate
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.encoding.request import Request
from attlas.trials.head_patterns import head_patterns
from attlas.trials.reading.pattern_scores import DRAWN, PATTERNS
from attlas.trials.support.scope import Scope


@pytest.fixture(scope="module")
def recall():
    subject = attlas.load("recall", device="cpu")
    examples = generate(8, seed=11)
    return subject, examples, head_patterns(subject.ask([each.text for each in examples]))


def test_the_induction_head_of_recall_is_found(recall):
    *_, tried = recall
    scores = tried.details["scores"]["induction"]
    assert tried.details["leaders"]["induction"].startswith("decoder.1 ")
    assert tried.figures["induction"].mean() > 0.95
    assert max(scores[f"decoder.0 head {head}"] for head in range(4)) < 0.1
    assert "induction 4 (most: layer 1 · head" in tried.sentence


def test_its_figure_is_the_attention_to_the_value(recall):
    """The generator knows where the value is, and the attention is read from the model alone."""
    subject, examples, tried = recall
    head = int(tried.details["leaders"]["induction"].split()[-1])
    for number, value in zip(tried.texts, tried.figures["induction"], strict=True):
        example = examples[number]
        maps = subject.attention(example.text)
        place = maps.tokens.spans().index(example.fields["value"])
        assert value == pytest.approx(float(maps["decoder.1"][head, -1, place]), abs=1e-5)


def by_hand(weights, ids, special, rows):
    """What one head scores, a loop over rows and keys."""
    looks = {
        "previous": lambda i, j: j == i - 1 and not special[i],
        "next": lambda i, j: j == i + 1 and not special[i],
        "same": lambda i, j: j == i and not special[i],
        "first": lambda i, j: j == 0 and i != 0,
        "separator": lambda i, j: special[j] and i != j,
        "induction": lambda i, j: (
            1 <= j < i and ids[j - 1] == ids[i] and not any(special[k] for k in (i, j, j - 1))
        ),
    }
    found = {}
    for name, wanted in looks.items():
        sums = []
        for i in rows:
            keys = [j for j in range(len(ids)) if wanted(i, j)]
            if keys:
                sums.append(sum(float(weights[i, j]) for j in keys))
        found[name] = np.mean(sums) if sums else np.nan
    reach = [np.exp(-sum(w * np.log(w) for w in weights[i].double().tolist())) for i in rows]
    found["broad"] = (np.mean(reach) - 1) / (len(ids) - 1)
    return found


def test_scores_are_means_over_rows_of_content_that_are_read():
    text = "the film was the film"
    subject = subjects.subject("sequence classification")
    tried = head_patterns(subject.ask([text]))
    encoded = subject.tokenizer(text, return_tensors="pt")
    model = subjects.plain("sequence classification")
    with torch.no_grad():
        attention = model(**encoded, output_attentions=True).attentions
    ids = encoded["input_ids"][0].tolist()
    special = [each in subject.tokenizer.all_special_ids for each in ids]
    last = len(attention) - 1
    for layer, weights in enumerate(attention):
        # Above the last layer, only the first token is read.
        content = [row for row in range(len(ids)) if not special[row]]
        rows = content if layer < last else [0]
        for head, each in enumerate(weights[0]):
            for name, value in by_hand(each, ids, special, rows).items():
                found = tried.details["scores"][name][f"encoder.{layer} head {head}"]
                assert (np.nan if found is None else found) == pytest.approx(
                    value, abs=1e-6, nan_ok=True
                ), (name, layer, head)


def test_rows_that_nothing_reads_do_not_count_on_drawn_tokens():
    subject = subjects.subject("sequence classification")
    scores = head_patterns(subject.ask([SHORT, OTHER])).details["scores"][DRAWN]
    last = subject.sites[-1].name
    assert {name for name, value in scores.items() if value is None} == {
        name for name in scores if name.startswith(f"{last} ")
    }


def test_a_head_that_gives_all_to_one_token_is_not_broad():
    subject = copies_attended()
    tried = head_patterns(subject.ask(["good BAD good", "GOOD bad bad"]))
    assert tried.figures["broad"].tolist() == pytest.approx([0, 0], abs=1e-6)
    assert tried.figures["separator"].tolist() == pytest.approx([0, 0], abs=1e-6)
    for name in ("previous", "next", "same"):  # [CLS] alone is read, and it is no content
        assert np.isnan(tried.figures[name]).all()


@pytest.mark.parametrize("task", ["causal lm", "masked lm", "sequence to sequence"])
def test_every_family_has_its_figures(task):
    subject = subjects.subject(task)
    request = Request(**subjects.ASKED.get(task, {}))
    tried = head_patterns(subject.ask(subjects.TEXTS[task], request), seed=3)
    assert set(tried.figures) == set(PATTERNS) and sorted(tried.texts) == [0, 1, 2]
    known = {name for name, values in tried.figures.items() if np.isfinite(values).any()}
    assert {"previous", "same", "broad"} <= known
    assert ("next" in known) == (task != "causal lm")
    assert (DRAWN in known) == (task != "sequence to sequence")
    for values in tried.figures.values():
        assert ((values >= -1e-6) & (values <= 1 + 1e-6) | np.isnan(values)).all()


def test_a_scope_names_the_layer_and_a_text_is_scored_alone():
    subject = subjects.subject("sequence classification")
    whole = head_patterns(subject.ask([SHORT, OTHER]), seed=5).details["scores"]["same"]
    one = head_patterns(subject.ask([SHORT, OTHER]), Scope("layer", 0), seed=5)
    assert set(one.details["scores"]["same"]) == {n for n in whole if n.startswith("encoder.0 ")}
    alone = head_patterns(subject.ask([SHORT]), Scope("layer", 0), seed=5)
    place = one.texts.index(0)
    for name in ("same", "previous", DRAWN):
        if alone.details["leaders"][name] == one.details["leaders"][name]:
            assert alone.figures[name][0] == pytest.approx(one.figures[name][place], abs=1e-6)


def test_what_it_cannot_do_is_refused():
    subject = subjects.subject("sequence classification")
    with pytest.raises(UsageError, match="above 0 and at most 1, not 2"):
        head_patterns(subject.ask([SHORT]), least=2)
    seen = subjects.subject("image classification")
    with pytest.raises(UnsupportedModelError, match="reads pictures"):
        head_patterns(seen.ask(subjects.TEXTS["image classification"][:1]))
