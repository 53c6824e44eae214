"""The survey of model types: what it finds for a dozen of them, and, slowly, for all."""

import sys
from pathlib import Path

import pytest
import tiny
import torch
import transformers

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import compatibility  # noqa: E402
import compatibility_judge as judge  # noqa: E402
import testers  # noqa: E402
import testers_methods  # noqa: E402
import testers_page  # noqa: E402
from compatibility_maps import laid_out  # noqa: E402
from compatibility_page import OPENED, Row, count, share  # noqa: E402
from subjects import subject  # noqa: E402

from attlas.methods import METHODS  # noqa: E402

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
    "swin": ("second road", {"vision": 3}),
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


def judged(**given):
    model = compatibility.build("bert", "BertForSequenceClassification")
    return compatibility.judge("bert", "", compatibility.Trial(model, given))


def test_an_edit_that_does_nothing_is_found_wrong(monkeypatch):
    monkeypatch.setattr(judge.edits, "uniform", lambda: judge.edits.apply(torch.clone))
    row = judged(input_ids=torch.arange(5, 15)[None])
    assert (row.verdict, row.note[:43]) == ("wrong", "WrongError: uniform attention does not chan")


def test_a_text_of_which_one_token_is_visible_is_no_reason_to_find_a_model_wrong():
    seen = torch.zeros(1, 4, dtype=torch.long)
    seen[0, 2] = 1
    row = judged(input_ids=torch.arange(5, 9)[None], attention_mask=seen)
    assert (row.verdict, row.note) == ("opened", "this input's output does not hang on it")


def test_where_a_head_rounds_attention_away_the_hidden_states_are_judged(monkeypatch):
    monkeypatch.setattr(judge, "TOLERANCE", -1.0)  # nothing passes in single precision
    row = judged(input_ids=torch.arange(5, 15)[None])
    assert (row.verdict, row.note) == ("opened", "")


def test_maps_in_another_layout_are_compared_as_numbers():
    seen = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    assert laid_out(seen.flatten(0, 1), seen.shape).equal(seen)
    assert laid_out(seen.unflatten(0, (1, 2)), seen.shape).equal(seen)
    windows = seen.unflatten(0, (1, 2)).transpose(1, 2)
    assert laid_out(windows, seen.shape).equal(seen)


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
    assert "wrong: its process died or hung here (1: `BertModel`)" in written
    methods = page.with_name("page_methods.md").read_text()
    assert "| `raw_attention` | 1 | 0 | 0 | 0 | 0 | 100.0% | 100.0% |" in methods
    assert "0 of 22 cells are raw\nerrors." in methods
    assert f"(transformers {transformers.__version__} with torch" in written
    before = (out / "tinybert.json").stat().st_mtime_ns
    testers.survey(tmp_path, (), out, None)
    assert (out / "tinybert.json").stat().st_mtime_ns == before  # what is done is not done again
    (out / "tinydead.json").unlink()
    testers.survey(tmp_path, ("tinybert",), out, page)
    assert "page.md is without 1 families not tried yet: tinydead" in capsys.readouterr().out


def test_a_method_is_counted_among_the_classes_that_it_is_defined_for():
    cells = [
        "ran",
        "ran",
        "refused: A1 is odd",
        "not defined: A2 has two stacks",
        "refused: A3 is odd",
        "too long: took over 9 s",
    ]
    tried = [
        testers.Tried(Row("a", f"A{place - 1}", "opened", {}), {"alti": cell})
        for place, cell in enumerate(cells)
    ]
    page = testers_page.methods_page(tried)
    assert "| `alti` | 2 | 2 | 1 | 1 | 0 | 33.3% | 40.0% |" in page
    assert "- the model is odd (2: `A1`, `A3`)" in page
    assert "- **not defined**: the model has two stacks (1: `A2`)" in page


def test_a_refusal_by_definition_is_told_apart_by_its_class():
    cell = testers_methods._cell(subject("sequence to sequence"), "a cat", METHODS["alti"])
    assert cell.startswith("not defined: ") and "a single stack" in cell


def test_what_takes_longer_than_the_survey_waits_is_no_raw_error(monkeypatch):
    def slow(*_, **__):
        raise TimeoutError("took over 9 s")

    monkeypatch.setattr(testers_methods.attlas, "explain", slow)
    cell = testers_methods._cell(subject("sequence classification"), "a cat", METHODS["alti"])
    assert cell == "too long: took over 9 s"


def test_a_model_that_hears_gets_the_sound_of_its_tester():
    model, _ = tiny.wave_subject("Wav2Vec2", "ForSequenceClassification")
    asked = testers_methods.subject_of(model, {"input_values": torch.randn(2, 4000)})
    text = testers_methods.text_of(asked)
    assert testers_methods._cell(asked, text, METHODS["raw_attention"]) == "ran"


def test_a_choice_among_texts_is_not_defined():
    model = compatibility.build("bert", "BertForMultipleChoice")
    cells = testers_methods.cells(model, {"input_ids": torch.arange(5, 15)[None]})
    assert {cell.split(":")[0] for cell in cells.values()} == {"not defined"}


@pytest.mark.slow
def test_nearly_all_types_are_opened_and_none_wrongly():
    survey = compatibility.run()
    assert [row for row in survey.rows if row.verdict == "wrong"] == []
    assert share(survey.rows) >= 0.98
    assert count(survey.rows)["no softmax attention"] <= 0.1 * len(survey.rows)
    written = (ROOT / "docs" / "compatibility.md").read_text()
    assert survey.summary() in written
    if f"## transformers {transformers.__version__}\n" in written:
        opened = [row for row in survey.rows if row.verdict in OPENED]
        assert all(f"| `{row.kind}` | `{row.head}` |" in written for row in opened)
        assert survey.table() in written
