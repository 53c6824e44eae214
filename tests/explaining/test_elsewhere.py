"""Explanations of captum, SHAP, inseq and ferret, read by their attributes and shown as ours."""

from dataclasses import dataclass
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from captum.attr import visualization
from rich.console import Console

import attlas
from attlas.errors import UsageError
from attlas.results import Explanation, Generation
from attlas.views import page, visualize_text

NAN = float("nan")


def record(**changes):
    given = {
        "word_attributions": torch.tensor([0.0, 0.1, -0.5, 0.9, 0.0]),
        "pred_prob": 0.9,
        "pred_class": "POSITIVE",
        "true_class": "NEGATIVE",
        "attr_class": "POSITIVE",
        "attr_score": 0.5,
        "raw_input_ids": ["[CLS]", "not", "bad", "##ly", "[SEP]"],
        "convergence_score": 0.01,
    }
    return visualization.VisualizationDataRecord(**{**given, **changes})


class ShapValues:
    """The attributes of `shap.Explanation`: arrays side by side that are cut together."""

    def __init__(self, values, base_values, data, output_names):
        self.values, self.base_values, self.data = values, base_values, data
        self.output_names = output_names

    def __getitem__(self, number):
        cut = self.values[number], self.base_values[number], self.data[number]
        return ShapValues(*cut, self.output_names)


def shap_values():
    values = np.array([[[0.1, -0.1], [0.7, -0.7], [0.0, 0.0]]])
    pieces = np.array(["not ", "bad", "."], dtype=object)
    return ShapValues(values, np.array([[0.2, -0.2]]), (pieces,), ["POS", "NEG"])


def inseq_output(*, encoder):
    def tokens(*words):
        return [SimpleNamespace(token=word, id=place) for place, word in enumerate(words)]

    sequence = SimpleNamespace(
        source=tokens("▁Hi", "</s>"),
        target=tokens("<s>", "▁Salut", "▁toi"),
        source_attributions=torch.tensor([[0.5, 0.4], [0.1, 0.2]]) if encoder else None,
        target_attributions=torch.tensor([[0.4, 0.1], [NAN, 0.3], [NAN, NAN]]),
        attr_pos_start=1,
        attr_pos_end=3,
    )
    info = {"attribution_method": "saliency", "model_name": "marian"}
    return SimpleNamespace(sequence_attributions=[sequence], info=info)


@dataclass
class FerretExplanation:
    text: str
    tokens: list
    scores: np.ndarray
    explainer: str
    target: int


def test_a_record_of_captum_is_an_explanation():
    found = attlas.from_elsewhere(record())
    assert isinstance(found, Explanation)
    assert found.tokens.sources == {"text": "not badly"}
    assert found.tokens.special == (True, False, False, False, True)
    assert found.top(1) == [("badly", pytest.approx(0.4))]
    assert (found.target.name, found.true_label) == ("POSITIVE", "NEGATIVE")
    assert found.prediction == ({"label": "POSITIVE", "probability": 0.9},)
    assert "Convergence score 0.01." in found.notes
    assert "from_elsewhere" in found.code() and "captum" in found.code()


def test_what_is_read_is_shown_saved_and_drawn_like_our_own(tmp_path):
    found = attlas.from_elsewhere(record())
    assert "badly" in found._repr_html_()
    assert "badly" in page(found.payload(), "t")
    assert Explanation.load(found.save(tmp_path / "e.attlas")).top() == found.top()
    assert [text.get_text() for text in found.plot().texts][:3] == ["[CLS]", "not", "badly"]


def test_shap_gives_the_largest_output_or_the_one_that_is_asked_for():
    (found,) = attlas.from_elsewhere(shap_values())
    assert found.target.name == "POS" and found.target.value == pytest.approx(1.0)
    assert found.tokens.sources == {"text": "not bad."}
    for target in ("NEG", 1):
        other = attlas.from_elsewhere(shap_values()[0], target=target)
        assert other.scores == pytest.approx([-0.1, -0.7, 0.0])
        assert other.target.name == "NEG"
    with pytest.raises(UsageError, match="no output 'NO': there are POS, NEG"):
        attlas.from_elsewhere(shap_values()[0], target="NO")


def test_inseq_gives_what_was_written_row_by_row():
    found = attlas.from_elsewhere(inseq_output(encoder=True))
    assert isinstance(found, Generation)
    assert found.scores == pytest.approx(np.array([[0.5, 0.1, 0.4, 0, 0], [0.4, 0.2, 0.1, 0.3, 0]]))
    assert (found.method, found.origin.model, found.text) == ("saliency", "marian", "Salut toi")
    alone = attlas.from_elsewhere(inseq_output(encoder=False))
    assert alone.outputs == (1, 2)
    assert alone.scores == pytest.approx(np.array([[0.4, 0, 0], [0.1, 0.3, 0]]))
    assert found.plot().get_ylabel() == "written"


def test_inseq_with_a_score_for_each_feature_is_told_to_aggregate():
    output = inseq_output(encoder=False)
    output.sequence_attributions[0].target_attributions = torch.zeros(3, 2, 4)
    with pytest.raises(UsageError, match="aggregate"):
        attlas.from_elsewhere(output)


def test_ferret_brings_its_text():
    scores = np.array([0, -0.2, 0.5, 0.1, 0])
    tokens = ["[CLS]", "not", "bad", "!", "[SEP]"]
    found = attlas.from_elsewhere(FerretExplanation("Not bad!", tokens, scores, "Gradient", 1))
    assert found.method == "Gradient" and found.target.name == "1"
    assert found.tokens.sources == {"text": "Not bad!"}
    assert found.tokens.offsets[1:4] == ((0, 3), (4, 7), (7, 8))


def test_plain_pairs_and_lists_of_explanations():
    found = attlas.from_elsewhere([("a", 0.5), ("film", -0.25)], target="POSITIVE", model="mine")
    assert found.top() == [("a", 0.5), ("film", -0.25)]
    assert (found.target.name, found.origin.model) == ("POSITIVE", "mine")
    assert len(attlas.from_elsewhere([record(), record()])) == 2
    with pytest.raises(UsageError, match="numbers alone"):
        attlas.from_elsewhere([0.1, 0.2])


def test_captums_records_are_shown_as_text_whatever_they_hold():
    bad = "<img src=x onerror=alert(1)>"
    shown = visualize_text(
        [record(), record(raw_input_ids=["a", bad, "b", "c", "d"], true_class=bad)]
    )
    html = shown._repr_html_()
    assert html.count('class="attlas-fragment"') == 2
    assert "<img" not in html and "&lt;img" in html
    assert "speaks for POSITIVE" in html
    assert (
        "speaks for"
        not in visualize_text([record()], legend=False)._repr_html_().split("</b>", 1)[1]
    )
    out = StringIO()
    Console(file=out, width=80).print(shown)
    assert "Convergence score" in out.getvalue()
