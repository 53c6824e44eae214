"""Judging: figures of a bag of words in closed form, and explanations from elsewhere."""

import itertools
import json
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from captum.attr import visualization
from known_models import bag_of_words
from rich.console import Console
from subjects import TEXTS, subject

import attlas
from attlas.data import Example
from attlas.errors import UnknownNameError, UsageError
from attlas.judging import judge
from attlas.judging.judge import judge_settings
from attlas.removing.ceilings import Best
from attlas.removing.erasures import Erasures
from attlas.results import Judgement
from attlas.views import page

WEIGHTS = {"fine": 1.1, "dull": -0.7, "film": 0.3, "odd": -0.2, "warm": 0.6}
WORDS = list(WEIGHTS)
TEXT = " ".join(WORDS)
BAG = bag_of_words(WEIGHTS)
AIMS = ["comprehensiveness", "sufficiency"]


def probability(words):
    return 1 / (1 + np.exp(-2 * sum(WEIGHTS[word] for word in words)))


def by_hand(order):
    """Comprehensiveness and sufficiency of an order of the words: means over sizes 1 to 4."""
    whole, sizes = probability(WORDS), range(1, len(WORDS))
    falls = [whole - probability([WORDS[i] for i in order[k:]]) for k in sizes]
    kept = [whole - probability([WORDS[i] for i in order[:k]]) for k in sizes]
    return float(np.mean(falls)), float(np.mean(kept))


ORDERS = {order: by_hand(order) for order in itertools.permutations(range(5))}


def scores_of(order):
    scores = np.empty(5)
    scores[list(order)] = [5, 4, 3, 2, 1]
    return scores.tolist()


def rows(judgement):
    return {(row.measure, row.removal): row for row in judgement.measured}


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 2, 0, 3, 1)])
def test_figures_are_those_worked_by_hand(order):
    found = rows(judge(BAG, scores_of(order), AIMS, text=TEXT))
    for number, aim in enumerate(AIMS):
        for how in ("delete", "mask"):
            assert found[aim, how].value == pytest.approx(ORDERS[order][number], abs=1e-6)


def test_beside_them_stand_chance_and_the_best_order():
    found = rows(judge(BAG, scores_of((0, 1, 2, 3, 4)), AIMS, text=TEXT, shuffles=400))
    for number, (aim, best) in enumerate(zip(AIMS, (max, min), strict=True)):
        row, every = found[aim, "mask"], np.array([each[number] for each in ORDERS.values()])
        assert row.ceiling == pytest.approx(best(every), abs=1e-6)
        assert row.shuffled == pytest.approx(every.mean(), abs=5 * every.std() / 20)
        share = (row.value - row.shuffled) / (row.ceiling - row.shuffled)
        assert row.share == pytest.approx(share)


def test_the_best_order_beats_chance_and_the_worst_does_not():
    for number, aim in enumerate(AIMS):
        ranked = sorted(ORDERS, key=lambda order: ORDERS[order][number], reverse=not number)
        best, worst = (
            rows(judge(BAG, scores_of(order), aim, text=TEXT, removal="mask"))[aim, "mask"]
            for order in (ranked[0], ranked[-1])
        )
        assert best.p < 0.06 and worst.p > 0.94
        assert best.share == pytest.approx(1, abs=1e-4) and worst.share < 0


def test_p_of_scores_that_know_nothing_is_uniform():
    random = np.random.default_rng(0)
    given = [random.random(5).tolist() for _ in range(120)]
    texts = [" ".join(random.permutation(WORDS)) for _ in given]
    pairs = [(text.split(), each) for text, each in zip(texts, given, strict=True)]
    found = judge(BAG, pairs, "comprehensiveness", text=texts, removal="mask", shuffles=19)
    p = np.array([each[0].p for each in found])
    for level in (0.1, 0.5, 0.9):
        assert abs((p <= level).mean() - level) < 4 * np.sqrt(level * (1 - level) / len(p))


def test_a_list_in_is_a_list_out_in_the_same_order_and_alone_is_the_same():
    explanations = [
        attlas.explain(BAG, text, method)
        for text in (TEXT, "warm film", TEXT)
        for method in ("gradient", "leave_one_out")
    ]
    together = judge(BAG, explanations, shuffles=9)
    assert [each.explanation for each in together] == explanations
    for each, judged in zip(explanations, together, strict=True):
        alone = judge(BAG, each, shuffles=9)
        assert alone.to_dict() == judged.to_dict()


def test_explanations_of_one_text_are_shuffled_alike():
    explanations = [attlas.explain(BAG, TEXT, name) for name in ("input_x_gradient", "lime")]
    one, other = (rows(each)["comprehensiveness", "mask"] for each in judge(BAG, explanations))
    assert one.shuffled == other.shuffled and one.ceiling == other.ceiling


SCORES = [0.5, -0.25, 0.75, 0.125, 1.0]
PIECES = ["[CLS]", *WORDS, "[SEP]"]
SHAP = np.stack([-np.array(SCORES), np.array(SCORES)], axis=1)


def shap(values, data):
    return SimpleNamespace(values=values, data=data, base_values=0.0)


def inseq(tokens, scores, **changes):
    made = SimpleNamespace(
        source=[SimpleNamespace(token=token, id=0) for token in tokens],
        source_attributions=torch.tensor(scores)[:, None],
        target=[],
        target_attributions=None,
    )
    vars(made).update(changes)
    return SimpleNamespace(sequence_attributions=[made], step_attributions=None)


FOREIGN = {
    "numbers": SCORES,
    "with special tokens": [9.0, *SCORES, 9.0],
    "an array": np.array(SCORES, dtype=np.float32),
    "a tensor": torch.tensor(SCORES, requires_grad=True),
    "words": list(zip(WORDS, SCORES, strict=True)),
    "tokens": list(zip(PIECES, [9.0, *SCORES, 9.0], strict=True)),
    "a pair": (WORDS, torch.tensor(SCORES)),
    "shap": shap(np.concatenate([[[0, 0]], SHAP, [[0, 0]]]), ["", *(f"{w} " for w in WORDS), ""]),
    "a batch of shap": shap(SHAP[None], (np.array([f"{word} " for word in WORDS]),)),
    "captum": visualization.VisualizationDataRecord(
        torch.tensor([9.0, *SCORES, 9.0]), 0.9, 1, 1, "1", 2.0, PIECES, 0.0
    ),
    "inseq": inseq([f"▁{word}" for word in WORDS] + ["[SEP]"], [*SCORES, 9.0]),
    "inseq of a decoder": inseq(
        [],
        [],
        source_attributions=None,
        target=[SimpleNamespace(token=f"Ġ{word}") for word in [*WORDS, "next"]],
        target_attributions=np.array([[*SCORES, np.nan]]).T,
        attr_pos_start=5,
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_scores_from_elsewhere_are_put_on_the_tokens(name):
    asked = {} if "shap" in name else {"text": TEXT}
    found = judge(BAG, FOREIGN[name], "comprehensiveness", shuffles=3, **asked)
    explanation = found.explanation
    assert explanation.scores.tolist() == [0, *SCORES, 0]
    assert explanation.target.name == "POSITIVE"
    assert list(explanation.tokens) == PIECES


def test_text_from_the_pieces_of_inseq():
    found = judge(BAG, FOREIGN["inseq of a decoder"], "log_odds", shuffles=3)
    assert found.explanation.origin.asked["text"] == TEXT


def test_a_word_gives_its_score_to_each_of_its_tokens_and_pieces_of_a_token_add_up():
    of, text = subject("sequence classification"), "Unkind films"
    tokens = attlas.explain(of, text, "gradient").tokens
    content = [place for place, special in enumerate(tokens.special) if not special]
    assert len(content) > 2  # or it would say nothing
    found = judge(of, [("Unkind", 2.0), ("films", 3.0)], "log_odds", text=text, shuffles=0)
    ends = [tokens.offsets[place][1] for place in content]
    expected = [2.0 if end <= len("Unkind") else 3.0 for end in ends]
    assert found.explanation.scores[content].tolist() == expected
    halves = [("f", 1.0), ("ine", 2.0), ("dull", 4.0)]
    found = judge(BAG, halves, "log_odds", text="fine dull", shuffles=0)
    assert found.explanation.scores.tolist() == [0, 3, 4, 0]


def test_a_pair_of_texts_is_walked_through_part_by_part():
    of = subject("next sentence")
    given = [("a", 1.0), ("cat", 2.0), ("my", 3.0), ("dog", 4.0)]
    found = judge(of, given, "log_odds", text=("a cat", "my dog"), shuffles=0).explanation
    table = found.aggregate("words")
    assert dict(zip(table["word"], table["score"], strict=True))["my"] >= 3.0
    assert set(found.segments) >= {"text_a", "text_b"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("fine", 1.0), ("flim", 2.0)], "token 1, 'flim', does not match .* 'dull film odd warm'"),
        (list(zip(WORDS[:-1], SCORES, strict=False)), "token 5, 'warm', has no score"),
        ([*zip(WORDS, SCORES, strict=True), ("more", 1.0)], "token 5, 'more', comes after"),
        (SCORES[:3], r"3 scores for a text of 5 content tokens \(7 with"),
        ((WORDS, SCORES[:2]), "5 tokens but 2 scores"),
        ([*SCORES[:4], float("nan")], "finite"),
        ("fine", "judge takes an Explanation, a list of numbers"),
    ],
)
def test_what_does_not_fit_is_named(given, said):
    with pytest.raises(UsageError, match=said):
        judge(BAG, given, text=TEXT)


def test_what_is_missing_is_asked_for():
    with pytest.raises(UsageError, match="need their text"):
        judge(BAG, SCORES)
    with pytest.raises(UsageError, match="2 explanations but 3 in text"):
        judge(BAG, [(WORDS, SCORES)] * 2, text=[TEXT] * 3)
    with pytest.raises(UsageError, match="of 2 generated tokens"):
        judge(BAG, inseq(WORDS, [SCORES], source_attributions=np.zeros((5, 2))))
    with pytest.raises(UnknownNameError, match="'mask'"):
        judge(BAG, SCORES, text=TEXT, removal="maks")
    with pytest.raises(UnknownNameError, match="comprehensiveness"):
        judge(BAG, SCORES, "comprehensivness", text=TEXT)


@pytest.mark.parametrize(
    ("measures", "removal", "message"),
    [
        ([None], "mask", r"measures takes a name or a list of names, not \[None\]"),
        (3, "mask", "measures takes a name or a list of names, not 3"),
        (None, None, "removal takes a name or a list of names, not None"),
        (None, [None], r"removal takes a name or a list of names, not \[None\]"),
    ],
)
def test_names_of_a_wrong_type_are_one_clear_line(measures, removal, message):
    """Tested below `judge` itself, whose types are checked first in tests."""
    with pytest.raises(UsageError, match=f"^{message}"):
        judge_settings(measures, removal, 9, 0)


def test_an_explanation_by_another_tokenizer_is_aligned():
    other = subject("sequence classification")
    given = attlas.explain(other, TEXT, "gradient")
    found = judge(BAG, given, "log_odds", shuffles=0).explanation
    words = given.aggregate("words")
    expected = [0, *words["score"][~words["special"].astype(bool)], 0]
    assert found.scores.tolist() == pytest.approx(expected, rel=1e-5)


def test_what_must_be_computed_again_is_not_applicable_to_scores_from_elsewhere():
    names = ["sensitivity", "randomisation", "token_f1"]
    for row in judge(BAG, SCORES, names, text=TEXT).measured:
        assert row.value is None and row.note.startswith("not applicable")
    given = attlas.explain(
        subject("sequence classification"), TEXTS["causal lm"][0], "raw_attention"
    )
    found = rows(judge(subject("sequence classification"), given, names[:2]))
    assert found["sensitivity", ""].value > 0
    assert "cannot change it" in found["randomisation", ""].note


def test_another_target_takes_another_column_and_is_kept():
    found = judge(BAG, FOREIGN["shap"], "log_odds", target="NEGATIVE", shuffles=0)
    assert found.explanation.scores.tolist() == [0, *(-score for score in SCORES), 0]
    assert found.explanation.target.name == "NEGATIVE"
    again = judge(BAG, found.explanation, "log_odds", shuffles=0)
    assert again.to_dict() == found.to_dict()
    assert "target='NEGATIVE'" in found.code() and f"text={TEXT!r}" in found.code()


def test_marks_may_be_spans_or_an_example_or_one_for_each_token():
    for marks in ([(0, 4)], Example(TEXT, spans=((0, 4),)), [True, *[False] * 4],
                  [False, True, *[False] * 5]):  # fmt: skip
        row = rows(judge(BAG, SCORES, "auprc", text=TEXT, marks=marks))["auprc", ""]
        assert row.value == pytest.approx(1 / 3)  # the third from the top
    assert "auprc" not in {row.measure for row in judge(BAG, SCORES, text=TEXT).measured}
    with pytest.raises(UsageError, match="marks are spans"):
        judge(BAG, SCORES, "auprc", text=TEXT, marks=[1.0, 2.0])


def test_location_is_held_to_known_chance_and_to_what_matters():
    found = rows(judge(BAG, list(WEIGHTS.values()), ["location", "direction"], text=TEXT))
    for how in ("delete", "mask"):
        row = found["location", how]
        assert row.shuffled == 0 and row.share == pytest.approx(row.value / row.ceiling)
        assert row.share > 0.9 and row.p < 0.1
        assert found["direction", how].value == 1 and found["direction", how].ceiling is None


def test_scores_without_any_below_zero_have_no_sign():
    sizes = [abs(weight) for weight in WEIGHTS.values()]
    found = judge(BAG, sizes, "direction", text=TEXT, shuffles=3)
    assert not found.explanation.origin.signed and found[0].value < 1
    assert judge(BAG, SCORES, "direction", text=TEXT, shuffles=3).explanation.origin.signed


def test_the_model_is_asked_once_for_what_all_shuffles_share(monkeypatch):
    asked = []
    of = Erasures.of
    monkeypatch.setattr(Erasures, "of", lambda self, *given: asked.append(1) or of(self, *given))
    judge(BAG, SCORES, "location", text=TEXT, removal="mask", shuffles=50)
    assert len(asked) < 10


def test_the_best_order_is_no_worse_than_any_that_was_asked_about(monkeypatch):
    """Even if the search finds nothing good."""

    def poor(erasures, texts, aims, *_):
        return {aim: {text: Best(np.arange(5), 0.0) for text in texts} for aim in aims}

    monkeypatch.setattr("attlas.judging.support.removals.best_orders", poor)
    found = judge(BAG, list(WEIGHTS.values()), AIMS, text=TEXT, removal="mask", shuffles=9)
    comprehensive, sufficient = found.measured
    assert comprehensive.ceiling >= comprehensive.value > 0
    assert sufficient.ceiling <= sufficient.value < 0


def test_circular_pairs_are_marked():
    removed = attlas.explain(BAG, TEXT, "leave_one_out", removal="mask")
    found = rows(judge(BAG, removed, ["log_odds", "tau_leave_one_out"], shuffles=3))
    assert not found["log_odds", "delete"].circular and found["log_odds", "mask"].circular
    assert found["tau_leave_one_out", "delete"].circular
    assert not any(row.circular for row in judge(BAG, SCORES, text=TEXT, shuffles=3).measured)


def test_a_removal_that_cannot_be_is_said_in_its_row():
    task = "masked lm"
    given = attlas.explain(subject(task), TEXTS[task][0], "gradient")
    found = rows(judge(subject(task), given, "log_odds", shuffles=3))
    assert found["log_odds", "mask"].value is not None
    assert "tied to places" in found["log_odds", "delete"].note


def test_a_text_of_one_token_cannot_be_judged():
    row = judge(BAG, [1.0], "comprehensiveness", text="fine")[0]
    assert row.value is None and row.p is None and "not defined" in row.note


def test_a_judgement_can_be_kept_and_shown(tmp_path):
    marks = [True, *[False] * 4]
    made = judge(BAG, attlas.explain(BAG, TEXT, "lime"), [*AIMS, "auprc"], marks=marks, shuffles=9)
    assert Judgement.load(made.save(tmp_path / "one.safetensors")).to_dict() == made.to_dict()
    assert Judgement.from_dict(json.loads(json.dumps(made.to_dict()))).to_dict() == made.to_dict()
    table = made.to_pandas()
    assert list(table["removal"]) == ["delete", "mask"] * 2 + [""]
    assert table.loc[0, "value"] == made[0].value
    assert "comprehensiveness" in made._repr_html_()
    assert made.to_html(tmp_path / "page.html").read_text().count("</script>") == 2
    console = Console(width=140, no_color=True, file=StringIO())
    console.print(made)
    line = next(x for x in console.file.getvalue().splitlines() if "↑ comprehensiveness" in x)
    assert line.split()[2] == "delete" and f"{made[0].value:.3f}" in line
    assert page(made.payload(), "title")


def test_the_code_judges_it_again():
    made = judge(BAG, attlas.explain(BAG, TEXT, "lime"), AIMS, shuffles=9, seed=4)
    *_, explain, again = made.code().splitlines()
    names = {"attlas": SimpleNamespace(explain=attlas.explain, judge=judge), "subject": BAG}
    exec(explain, names)
    assert eval(again, names).to_dict() == made.to_dict()


def test_what_was_read_from_elsewhere_is_judged_like_the_scores_themselves():
    scores = scores_of((0, 1, 2, 3, 4))
    read = attlas.from_elsewhere((WORDS, scores))
    found, plain = rows(judge(BAG, read, AIMS)), rows(judge(BAG, scores, AIMS, text=TEXT))
    assert [row.value for row in found.values()] == [row.value for row in plain.values()]
