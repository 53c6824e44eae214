"""One small result of every class, with a saved file of each in `saved/`."""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
from results import report_sample
from results.records import film, maps, origin

import attlas
from attlas.results import (
    CheckResult,
    Claim,
    ComparedRow,
    ComparedTable,
    Comparison,
    Edge,
    Generation,
    HeadImportance,
    HeadRedundancy,
    Judgement,
    PruneCurve,
    Site,
    StudyResult,
    TargetRecord,
    Tree,
    TrialResult,
    Trigger,
    Triggers,
)
from attlas.results.comparison import ComparedWord, PairAgreement
from attlas.results.judgement import MeasuredScore
from attlas.results.prune_curve import SHARE_AXIS, Curve, CurvePoint, Mean
from attlas.results.support import plots
from attlas.results.support.report_sections import DataRecord, Figure, TrialFigure, TrialSection
from attlas.results.triggers import Effect, Entry, TriggerWord
from attlas.tokens import Tokens

HOUSE = Path(attlas.__file__).parent
SAVED = Path(__file__).parent / "saved"
SITES = (Site("encoder", 0, 2), Site("encoder", 1, 1))


def result_classes():
    """Every subclass of `Result` in the package, found in its source."""
    found = []
    for path in sorted(HOUSE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)\(Result\):", path.read_text("utf-8"), re.MULTILINE):
            module = ".".join(["attlas", *path.relative_to(HOUSE).with_suffix("").parts])
            found.append(getattr(import_module(module), name))
    return found


def explanation():
    tokens = film().tokens
    return film(
        maps=maps(tokens),
        pictures={"image": np.arange(12, dtype=np.uint8).reshape(2, 2, 3)},
        details={"steps": 3},
    )


def generation():
    tokens = Tokens(
        ("a", " b", "x", " y"),
        ((0, 1), (1, 3), (0, 1), (1, 3)),
        (False,) * 4,
        ("text", "text", "output", "output"),
        {"text": "a b", "output": "x y"},
    )
    targets = (TargetRecord("x", "logit", 1.5), TargetRecord(" y", "logit", 0.5))
    scores = np.array([[0.5, 0.25, 0, 0], [0.125, 0.5, 0.25, 0]], dtype=np.float32)
    choice = ({"label": "x", "probability": 0.5},)
    return Generation(
        tokens,
        scores,
        (2, 3),
        targets,
        origin(signed=False, verb="explain_generation"),
        ("a note",),
        (choice, choice),
        {},
        ((), ("of row 1",)),
    )


def judgement():
    measured = (
        MeasuredScore(
            "comprehensiveness", "mask", 0.5, "higher", "faithfulness", 0.25, 0.75, 0.5, 0.04
        ),
        MeasuredScore("auprc", "", None, "higher", "plausibility", note="no rationale"),
    )
    return Judgement(film(), measured, {"removal": ["mask"], "shuffles": 10, "seed": 0}, ("n",))


def comparison():
    other = film(
        scores=np.array([0.0, 0.5, 0.25, 0.125, 0.125, 0.0, 0.5]),
        origin=origin(method="raw_attention", signed=False, options={}),
    )
    spans = {"Not": (0, 3), "good": (4, 8), "films": (9, 14), "!": (14, 15)}
    places = ((1,), (2,), (3, 4), (5,))
    words = tuple(
        ComparedWord(text, "text", span, (place, place))
        for (text, span), place in zip(spans.items(), places, strict=True)
    )
    scores = np.array([[-2.0, 1.0, 0.75, 0.125], [0.5, 0.25, 0.25, 0.0]])
    agreement = (PairAgreement(0, 1, 0.75, 0.5, 0.5, "strength", 4),)
    return Comparison(
        (film(), other),
        ("gradient_attention", "raw_attention"),
        words,
        scores,
        agreement,
        2,
        "methods",
        ("a note",),
    )


def head_importance():
    how = origin(method="attattr", verb="head_importance")
    values = [np.array(each) for each in ([0.5, 0.25, 0.0], [0.25, 0.0, -0.25], [0.75, 0.5, 0.25])]
    return HeadImportance(SITES, *values, 12, how, ("a note",))


def head_redundancy():
    distances = np.array([[0.0, 0.5, np.nan], [0.5, 0.0, 0.25], [np.nan, 0.25, 0.0]])
    return HeadRedundancy(SITES, distances, 12, origin(verb="head_redundancy"), ("a note",))


def prune_curve():
    mean = Mean(0.75, 0.5, 0.875)
    points = tuple(
        CurvePoint(place, heads, mean) for place, heads in ((0.0, 0), (0.5, 1), (1.0, 3))
    )
    curves = (Curve("attattr", points, mean, Mean(0.25, 0.0, 0.5)), Curve("random", points, mean))
    how = origin(verb="prune_curve", options={"by": ["attattr"]})
    return PruneCurve(SHARE_AXIS, curves, (head_importance(),), 12, how, ("a note",))


def tree():
    how = origin(method="tree", verb="tree", options={"tau": 0.4, "lambda_": 0.0})
    edges = (Edge(1, 0, 1, 0.5), Edge(0, 1, 2, 0.25))
    target = TargetRecord("NEGATIVE", "logit", 1.5)
    chosen = ({"label": "NEGATIVE", "probability": 0.75},)
    return Tree(film().tokens, 0, edges, 2, 0.5, target, how, chosen, ("a note",))


def triggers():
    trigger = Trigger(
        (TriggerWord("not", "text", 0.0), TriggerWord("good", "text", 0.5)),
        0.75,
        (Entry("not", "good", 0.5), Entry("good", "good", 0.25)),
        "encoder.1",
        0,
        "Not good films!",
        "NEGATIVE",
        (Effect("POSITIVE", 8, 0.75, 0.25, 0.5, 0.25, 0.125, 0.375),),
    )
    return Triggers((trigger,), origin(method="triggers", verb="triggers"), ("a note",))


def report():
    whole = report_sample.report()
    table = replace(whole.table, rows=whole.table.rows[:1])
    return replace(whole, table=table, panels=(), standings=(), agreement=None)


def study():
    claims = (
        Claim(
            "Permuting keys costs 6 points.",
            "the poster",
            "ours within 3 of 6",
            "partly",
            "It costs more.",
            Figure(9.5, 4.0, 15.0, 5),
            6.0,
        ),
        Claim("It helps.", "the poster", "none: not tested", "not tested here", "Elsewhere."),
    )
    rows = (ComparedRow("layer 0", Figure(0.5, 0.25, 0.75, 5), 0.25), ComparedRow("1", Figure(0)))
    reading = "A longer bar: a larger drop."
    plot = plots.bars("Layers", {"layer 0": 0.5}, x_label="drop", reading=reading)
    return StudyResult(
        "poster",
        "Is attention explanation?",
        "a poster",
        True,
        claims,
        ("Another model.",),
        (ComparedTable("Table 1", "The drop.", rows),),
        (plot,),
        {"count": 12, "data": "reviews"},
        (0, 1),
        ("a note",),
        2.5,
        "cpu",
        {"attlas": "0"},
        {"drops": [0.5]},
    )


def trial():
    figures = (
        TrialFigure("difference", Figure(0.25, 0.125, 0.5, 12), 0.75),
        TrialFigure("flips", Figure(0.0, 0.0, 0.0, 12)),
    )
    reading = "A point is a text."
    plot = plots.bars("Layers", {"layer 0": 0.5}, x_label="difference", reading=reading)
    section = TrialSection(
        "permutation", "last layer", "It moved the answer.", figures, "That it is wrong.", (plot,)
    )
    data = DataRecord("reviews", 12, left_out={"too long": 1})
    how = origin(
        method="permutation",
        verb="try_trial",
        options={"repeats": 5, "seed": 0},
        asked={"data": "reviews", "count": 12},
    )
    return TrialResult(section, data, how, ("a note",), {"variants": 5})


def check():
    methods = {"gradient": "", "decompx": "it has no sequence classifier"}
    return CheckResult(
        "sentiment",
        "BertForSequenceClassification",
        "sequence classification",
        SITES,
        *(True, True, True, True, False),
        "",
        "sdpa",
        1e-6,
        methods,
    )


EVERY = {
    "CheckResult": check,
    "Comparison": comparison,
    "Explanation": explanation,
    "Generation": generation,
    "HeadImportance": head_importance,
    "HeadRedundancy": head_redundancy,
    "Judgement": judgement,
    "Maps": maps,
    "PruneCurve": prune_curve,
    "Report": report,
    "StudyResult": study,
    "Tree": tree,
    "TrialResult": trial,
    "Triggers": triggers,
}
