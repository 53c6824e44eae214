"""The study of attention attribution, with a tiny model in the place of fine-tuned ones."""

import json
from types import SimpleNamespace

import pytest
from results.every_result import prune_curve, triggers
from tiny import subject_parts

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.studies.tables.pruned_heads import TaskResult, claims_on, correlations

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
def ran(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "deep" / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTLAS_DATA", str(folders[1]))
        seen = []
        how = {"models": str(folders[0]), "tasks": ("rte", "mrpc"), **ASKED}
        found = attlas.study("attattr", out=out, watch=seen.append, **how)
    return found, out, seen


def test_every_task_has_its_curves_its_effectiveness_and_its_triggers(ran):
    found, out, seen = ran
    tasks = [TaskResult.from_dict(each) for each in found.details["tasks"]]
    assert [each.task for each in tasks] == ["rte", "mrpc"]
    for each in tasks:
        assert each.pruned.examples == 6 and each.pruned.importances[0].examples == 3
        assert len(each.pruned.curves) == 6 and len(each.effectiveness.curves) == 4
        assert each.effectiveness.examples == 2
        assert each.importance.by == "attattr" and each.importance.origin.options == {"steps": 2}
    assert {step.what.split(":")[0] for step in seen} == {"rte", "mrpc"}
    assert len(list((out / "parts").iterdir())) == 2


def test_tasks_are_compared(ran):
    # The two models are one, and so are the texts and the numbers of their labels.
    tasks = [TaskResult.from_dict(each) for each in ran[0].details["tasks"]]
    found = correlations({each.task: [each] for each in tasks})
    assert list(found.values()) == [[pytest.approx(1)]]


def task(name, effects, areas, drop):
    """A task whose figures are known."""
    orders = [
        f"{by}, {order} first" for by in ("attattr", "attention") for order in ("highest", "lowest")
    ]
    mean = lambda value: SimpleNamespace(mean=value, low=value, high=value)  # noqa: E731
    points = {
        order: SimpleNamespace(points=[None, SimpleNamespace(accuracy=mean(value))])
        for order, value in zip(orders, effects, strict=True)
    }
    strongest = SimpleNamespace(drop=drop, low=drop - 0.1)
    found = TaskResult(name, prune_curve(), points, triggers())
    lines = [SimpleNamespace(name=each, area=mean(value)) for each, value in areas.items()]
    pruned = SimpleNamespace(curves=lines, importances=found.pruned.importances)
    tried = SimpleNamespace(triggers=[SimpleNamespace(strongest=strongest)])
    return TaskResult(name, pruned, points, tried)


@pytest.mark.usefixtures("unchecked")
def test_claims_are_decided_by_their_rules():
    areas = {"attattr": 0.8, "taylor": 0.81, "accuracy_difference": 0.7}
    found = claims_on(
        {
            "sst2": [task("sst2", (0.7, 0.9, 0.8, 0.85), areas, 0.3)],
            "rte": [task("rte", (0.9, 0.9, 0.8, 0.9), {**areas, "taylor": 0.8}, 0.05)],
        }
    )
    verdicts = [claim.verdict for claim in found]
    # rte: no gap by attribution; sst2: Taylor is ahead; no two tasks of pairs; rte: crosses zero.
    assert verdicts == ["partly", "partly", "partly", "not tested here", "partly"]


@pytest.fixture
def unchecked(monkeypatch):
    """Types are not checked, as outside of tests: figures are stood in for."""
    import jaxtyping

    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def test_what_cannot_be_is_said(folders):
    with pytest.raises(UnknownNameError, match="unknown task 'rtee'"):
        attlas.study("attattr", models=str(folders[0]), tasks=("rtee",))
    with pytest.raises(UsageError, match="has no folder sst2"):
        attlas.study("attattr", models=str(folders[0]))
    with pytest.raises(UsageError, match="nowhere is no folder"):
        attlas.study("attattr", models="nowhere")
