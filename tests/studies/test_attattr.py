"""The study of attention attribution, with a tiny model in the place of fine-tuned ones."""

import json
from itertools import pairwise

import pytest
from tiny import subject_parts

from attlas.errors import UnknownNameError, UsageError
from attlas.studies import attattr as module
from attlas.studies.attattr import AttattrStudy, TaskResult, attattr

LABELS = {"rte": ("entailment", "not_entailment"), "mrpc": ("not_equivalent", "equivalent")}
WORDS = ["good", "kind", "not", "cat", "film", "dog"]
ASKED = {"rank_on": 3, "count": 6, "effect_on": 2, "steps": 2}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of models, and one of data."""
    models, data = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("data")
    for task, labels in LABELS.items():
        model, tokenizer = subject_parts("sequence classification")
        names = [*labels, "other"][: model.config.num_labels]
        model.config.id2label = dict(enumerate(names))
        model.config.label2id = {name: number for number, name in enumerate(names)}
        model.save_pretrained(models / task)
        tokenizer.save_pretrained(models / task)
        (data / task).mkdir()
        for split, noun in (("train", "film"), ("dev", "dog")):
            rows = [
                {"text_a": f"the {noun} was", "text_b": word, "label": labels[number % 2]}
                for number, word in enumerate(WORDS)
            ]
            (data / task / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return models, data


@pytest.fixture(scope="module")
def study(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "deep" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTLAS_DATA", str(folders[1]))
        seen = []
        found = attattr(folders[0], out, ["rte", "mrpc"], **ASKED, watch=seen.append)
    return found, out, seen


def test_every_task_has_its_curves_its_effectiveness_and_its_triggers(study):
    found, _, seen = study
    assert [each.task for each in found.tasks] == ["rte", "mrpc"]
    for each in found.tasks:
        assert each.pruned.examples == 6 and each.pruned.importances[0].examples == 3
        assert len(each.pruned.curves) == 6 and len(each.effectiveness.curves) == 4
        assert each.effectiveness.examples == 2
        assert each.importance.by == "attattr" and each.importance.origin.options == {"steps": 2}
    assert {step.what.split(":")[0] for step in seen} == {"rte", "mrpc"}


def test_tasks_are_compared(study):
    # The two models are one, and so are the texts and the numbers of their labels.
    (found,) = study[0].correlations().values()
    assert found.pearson == pytest.approx(1) and found.spearman == pytest.approx(1)
    assert "| rte and mrpc | 1.00 | 1.00 | 8 |" in study[0].markdown()


def test_what_is_written_can_be_read(study):
    found, out, _ = study
    names = {"rte.json", "mrpc.json", "attattr.json", "attattr.md", "attattr.html"}
    assert {path.name for path in out.iterdir()} == names
    record = json.loads((out / "attattr.json").read_text("utf-8"))
    again = AttattrStudy(tuple(TaskResult.from_dict(each) for each in record["tasks"]))
    assert again.to_dict() == found.to_dict() and again.payload() == found.payload()
    assert (out / "attattr.md").read_text("utf-8") == found.markdown()
    assert "rte: by each text" in (out / "attattr.html").read_text("utf-8")


def test_a_table_has_as_many_cells_in_each_row(study):
    tables = [line for line in study[0].markdown().splitlines() if line.startswith("|")]
    for head, rule in pairwise(tables):
        if rule.startswith("| ---"):
            assert head.count("|") == rule.count("|")
    assert "### rte: accuracy in % as the least important heads go" in study[0].markdown()


def test_a_task_that_is_there_is_not_run_again_unless_it_is_asked_otherwise(
    study, folders, monkeypatch
):
    found, out, _ = study
    monkeypatch.setenv("ATTLAS_DATA", str(folders[1]))

    def refuse(*_, **__):
        raise AssertionError("run again")

    monkeypatch.setattr(module, "load", refuse)
    again = attattr(folders[0], out, ["rte", "mrpc"], **ASKED)
    assert again.to_dict() == found.to_dict()
    with pytest.raises(AssertionError, match="run again"):
        attattr(folders[0], out, ["rte"], **{**ASKED, "steps": 3})


def test_what_cannot_be_is_said(folders, tmp_path):
    with pytest.raises(UnknownNameError, match="unknown task 'rtee'"):
        attattr(folders[0], tmp_path, ["rtee"])
    with pytest.raises(UsageError, match="has no folder sst2"):
        attattr(folders[0], tmp_path)
    (tmp_path / "rte.json").write_text("{}")
    with pytest.raises(UsageError, match="not a result of this study"):
        attattr(folders[0], tmp_path, ["rte"])
    with pytest.raises(UsageError, match="cannot be made"):
        attattr(folders[0], tmp_path / "rte.json" / "below", ["rte"])
