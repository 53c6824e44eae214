"""The survey of model types: what it finds for a dozen of them, and, slowly, for all."""

import sys
from pathlib import Path

import pytest
import transformers

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import compatibility  # noqa: E402
from compatibility_page import OPENED, count, share  # noqa: E402

EXPECTED = {
    "bert": ("opened", {"encoder": 2}),
    "deberta-v2": ("second road", {"encoder": 2}),
    "bloom": ("second road", {"decoder": 2}),
    "xglm": ("second road", {"decoder": 2}),
    "fsmt": ("second road", {"encoder": 2, "decoder": 2, "cross": 2}),
    "t5": ("opened", {"encoder": 2, "decoder": 2, "cross": 2}),
    "gpt_oss": ("opened", {"decoder": 2}),
    "granite_swa": ("second road", {"decoder": 2}),
    "diffllama": ("second road", {"decoder": 2}),
    "mixtral": ("opened", {"decoder": 2}),
    "jamba": ("opened", {"decoder": 2}),
    "qwen3_next": ("opened", {"decoder": 1}),
    "deepseek_v32": ("opened", {"decoder": 2}),
    "vit": ("opened", {"vision": 2}),
    "siglip": ("second road", {"vision": 3}),
    "swin": ("opened", {"vision": 3}),
    "hiera": ("second road", {"vision": 4}),
    "mamba": ("no softmax attention", {}),
    "longformer": ("refused", {}),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_type_comes_out_as_expected(kind):
    (row,) = compatibility.survey_all([kind])
    assert (row.verdict, row.sites) == EXPECTED[kind], row.note


def test_a_refusal_says_why():
    (row,) = compatibility.survey_all(["longformer"])
    assert row.note.startswith("LongformerSelfAttention cannot be opened: it attends in")


@pytest.mark.slow
def test_nearly_all_types_are_opened_and_none_wrongly():
    survey = compatibility.run()
    assert [row for row in survey.rows if row.verdict == "wrong"] == []
    assert share(survey.rows) >= 0.95
    assert count(survey.rows)["no softmax attention"] <= 0.1 * len(survey.rows)
    written = (ROOT / "docs" / "compatibility.md").read_text()
    assert survey.summary() in written
    if f"## transformers {transformers.__version__}\n" in written:
        opened = [row for row in survey.rows if row.verdict in OPENED]
        assert all(f"| `{row.kind}` | `{row.head}` |" in written for row in opened)
        assert survey.table() in written
