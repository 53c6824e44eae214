"""The survey of model types: what it finds for a dozen of them, and, slowly, for all."""

import sys
from pathlib import Path

import pytest
import transformers

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import compatibility  # noqa: E402
import testers  # noqa: E402
from compatibility_page import OPENED, count, share  # noqa: E402

EXPECTED = {
    "bert": ("opened", {"encoder": 2}),
    "deberta-v2": ("second road", {"encoder": 2}),
    "bloom": ("second road", {"decoder": 2}),
    "xglm": ("second road", {"decoder": 2}),
    "fsmt": ("second road", {"encoder": 2, "decoder": 2, "cross": 2}),
    "t5": ("opened", {"encoder": 2, "decoder": 2, "cross": 2}),
    "t5gemma2": ("opened", {"encoder": 2, "decoder": 2, "cross": 2}),
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
    "longformer": ("second road", {"encoder": 2}),
    "longt5": ("second road", {"encoder": 2, "decoder": 2, "cross": 2}),
    "mra": ("refused", {}),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_type_comes_out_as_expected(kind):
    (row,) = compatibility.survey_all([kind])
    assert (row.verdict, row.sites) == EXPECTED[kind], row.note


def test_a_refusal_says_why():
    (row,) = compatibility.survey_all(["mra"])
    assert row.note.startswith("MraSelfAttention cannot be opened: it approximates")


TESTER = """
from transformers import BertConfig, BertForSequenceClassification, BertModel
import torch
class Tester:
    def prepare_config_and_inputs_for_common(self):
        sizes = dict(vocab_size=40, hidden_size=16, num_attention_heads=2, intermediate_size=8)
        return BertConfig(num_hidden_layers=1, **sizes), {"input_ids": torch.arange(5, 15)[None]}
class TinyTest:
    all_model_classes = (BertModel, BertForSequenceClassification)
    def setUp(self):
        self.model_tester = Tester()
    def _prepare_for_class(self, inputs, model_class):
        return inputs
"""
DIES = TESTER.replace("return inputs", "import os; os._exit(3)")


def test_the_models_of_a_checkout_are_opened_and_tried_one_process_a_family(tmp_path, capsys):
    for family, code in (("tinybert", TESTER), ("tinydead", DIES)):
        folder = tmp_path / "tests" / "models" / family
        folder.mkdir(parents=True)
        (folder / f"test_modeling_{family}.py").write_text(code)
    out, page = tmp_path / "out", tmp_path / "page.md"
    testers.survey(tmp_path, (), out, page)
    assert "tinybert: 2 opened, 22 ran" in capsys.readouterr().out
    written = page.read_text()
    assert "| `tinybert` | `BertModel` | opened | 1 encoder | 1 of 1 |  |" in written
    assert "wrong: its process died or hung here (`BertModel`)" in written
    methods = page.with_name("page_methods.md").read_text()
    assert "| `raw_attention` | 1 | 0 | 0 | 100.0% |" in methods
    assert "0 of 22 cells are raw errors." in methods
    before = (out / "tinybert.json").stat().st_mtime_ns
    testers.survey(tmp_path, (), out, None)
    assert (out / "tinybert.json").stat().st_mtime_ns == before  # what is done is not done again


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
