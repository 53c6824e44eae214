"""A report as an audit of a fine-tuned classifier might give it."""

import zlib

import numpy as np

from attlas.results.report import Report
from attlas.results.support import plots
from attlas.results.support.licence import MAY_NOT, Licence, RemovalLicence, why
from attlas.results.support.report_sections import (
    Agreement,
    Cell,
    Column,
    Cost,
    DataRecord,
    Figure,
    Finding,
    LeftOutRow,
    Line,
    MethodRow,
    Panel,
    Reading,
    RemovalPair,
    ReportTable,
    Sample,
    Standing,
    TrialFigure,
    TrialSection,
    Truth,
    UnusualTexts,
)
from attlas.results.support.verdict import (
    Bounds,
    Direction,
    GridWord,
    GroupStanding,
    OtherReading,
    Verdict,
)

WORTH = {  # what each method is worth, from 0 to 1
    "raw_attention": ("W", 0.24),
    "attention_rollout": ("W", 0.08),
    "attention_flow": ("W", 0.11),
    "effective_attention": ("W", 0.19),
    "value_weighted_attention": ("V", 0.31),
    "value_zeroing": ("V", 0.42),
    "globenc": ("V", 0.47),
    "alti": ("V", 0.49),
    "gradient_attention": ("V", 0.52),
    "generic_relevance": ("V", 0.45),
    "attattr": ("V", 0.58),
    "lrp_relevance": ("P", 0.55),
    "attn_lrp": ("P", 0.66),
    "decompx": ("P", 0.63),
    "integrated_gradients": ("reference", 0.61),
    "kernel_shap": ("reference", 0.72),
    "leave_one_out": ("reference", 0.7),
    "gradient": ("reference", 0.34),
    "shuffled": ("control", 0.0),
    "position": ("control", 0.05),
    "ceiling": ("control", 1.0),
}
REMOVALS = ("delete", "mask", "knock_out")
MEASURES = {  # better, kind, value of worth 0, value of worth 1
    "comprehensiveness": ("higher", "faithfulness", 0.12, 0.71),
    "sufficiency": ("lower", "faithfulness", 0.35, 0.02),
    "decision_flip": ("lower", "faithfulness", 0.68, 0.09),
    "log_odds": ("lower", "faithfulness", -0.4, -3.1),
    "tau_leave_one_out": ("higher", "faithfulness", 0.0, 1.0),
}
TEXTS = 400


def noise(*names):
    """A small number that is always the same for the same names."""
    seed = zlib.crc32("·".join(names).encode())
    return float(np.random.default_rng(seed).normal(0, 0.02))


def around(value, spread, n=TEXTS):
    return Figure(value, value - spread, value + spread, n)


def worth(method, removal):
    shift = -0.09 if removal == "knock_out" and WORTH[method][0] in "VP" else 0.0
    return WORTH[method][1] + shift + noise(method, removal)


def cell(method, column):
    if column.kind == "plausibility":
        value = 0.3 + 0.4 * WORTH[method][1] + noise(method, column.measure)
        return Cell(around(value, 0.05, 120), best=method == "attn_lrp", p=0.004)
    if method == "leave_one_out" and column.measure == "tau_leave_one_out":
        return Cell(Figure(None), note="circular")
    if method == "ceiling" and column.measure not in ("comprehensiveness", "sufficiency"):
        return Cell(Figure(float("nan")), note="not applicable: no search for this measure")
    _, _, low, high = MEASURES[column.measure]
    value = low + (high - low) * worth(method, column.removal)
    best = method == "kernel_shap" and column.removal != "knock_out"
    return Cell(around(value, 0.06 * abs(high - low)), best, 0.0001 if best else 0.21)


def table():
    columns = [
        Column(measure, removal, better, kind)
        for measure, (better, kind, *_) in MEASURES.items()
        for removal in REMOVALS
    ]
    columns += [Column(name, "", "higher", "plausibility") for name in ("token_f1", "auprc")]
    rows = (
        MethodRow(method, family, tuple(cell(method, column) for column in columns))
        for method, (family, _) in WORTH.items()
    )
    return ReportTable(tuple(columns), tuple(rows))


def standings():
    return tuple(
        Standing(method, family, removal, around(worth(method, removal), 0.07))
        for removal in REMOVALS
        for method, (family, _) in WORTH.items()
        if method not in ("shuffled", "ceiling")
    )


def panel(measure, removal):
    better, _, low, high = MEASURES[measure]
    places = tuple(round(0.05 * step, 2) for step in range(1, 20))
    lines = []
    for method, (family, _) in WORTH.items():
        value = low + (high - low) * worth(method, removal)
        shape = np.sqrt(places) if measure == "comprehensiveness" else 1 - np.array(places)
        mean = tuple(float(each) for each in 1.3 * value * shape)
        band = 0.05 * abs(high - low)
        lower, upper = tuple(m - band for m in mean), tuple(m + band for m in mean)
        lines.append(Line(method, family, mean, lower, upper))
    return Panel(measure, removal, better, "share of tokens removed", places, tuple(lines))


def agreement():
    methods = tuple(name for name, (family, _) in WORTH.items() if family != "control")
    values = [WORTH[name][1] for name in methods]

    def matrix(scale):
        return tuple(
            tuple(1.0 if a == b else round(scale - 1.2 * abs(a - b), 3) for b in values)
            for a in values
        )

    by = {"kendall": matrix(0.6), "top_k": matrix(0.7), "rank_biased_overlap": matrix(0.8)}
    return Agreement(methods, by, "Two methods agree at τ = 0.31 on average.")


def trial_plots():
    """One plot of each kind."""
    random = np.random.default_rng(5)
    largest = random.uniform(0.05, 0.9, 60)
    moved = {
        "NEGATIVE": 0.4 * largest[:30] * random.uniform(0, 1, 30),
        "POSITIVE": np.full(30, 0.02),
    }
    moved["POSITIVE"][3] = np.nan
    places = np.linspace(0, 1, 11)
    tokens = ["[CLS]", *(token.strip() for token in TOKENS), "[SEP]"]
    own = random.dirichlet(np.full(len(tokens), 0.4), len(tokens))
    other = random.dirichlet(np.full(len(tokens), 0.4), len(tokens))
    shares = random.uniform(0, 1, (6, 12))
    shares[5, 2] = np.nan
    return (
        plots.scatter(
            "Output moved by the largest weight",
            {
                "NEGATIVE": (largest[:30], moved["NEGATIVE"]),
                "POSITIVE": (largest[30:], moved["POSITIVE"]),
            },
            x_label="largest weight",
            y_label="median total variation",
            reading="A point is a text; low on the right: a large weight that does not matter.",
        ),
        plots.curve(
            "Total variation against divergence",
            places,
            {"consistent": places**2, "each text by itself": 0.1 * places},
            x_label="Jensen–Shannon divergence",
            y_label="total variation",
            reading="A lower curve is an adversary that is freer.",
            bands={"consistent": (places**2 - 0.05, places**2 + 0.05)},
        ),
        plots.bars(
            "Share of texts whose answer turns",
            {"encoder.0": 0.02, "encoder.1": 0.31, "encoder.2, the last layer": -0.1, "none": None},
            x_label="share of texts",
            reading="A longer bar: a layer whose attention decides more.",
            intervals={"encoder.1": (0.22, 0.4)},
        ),
        plots.violins(
            "Total variation by the largest weight",
            {"below 0.5": moved["NEGATIVE"], "above 0.5": moved["POSITIVE"], "none": []},
            x_label="largest weight",
            y_label="median total variation",
            reading="A wide outline: many texts.",
        ),
        plots.matrix(
            "Heads: previous",
            [f"encoder.{layer}" for layer in range(6)],
            [str(head) for head in range(12)],
            shares,
            x_label="head",
            y_label="layer",
            reading="How much of its attention each head gives to the token before.",
        ),
        plots.maps(
            "Two attentions, one output",
            tokens,
            tokens,
            {"the model's": own, "another with the same output": other},
            reading="Both give the very same output.",
        ),
        plots.table(
            "Erased weights and answers that turn",
            ("largest weight", "random turns", "random does not", "share"),
            [["turns", 3, 12, 0.2], ["does not", 1, 84, 0.0118]],
            reading="Each text is in one of four cells.",
        ),
    )


TOKENS = ("a", " clumsy", ",", " over", "wrought", " film", " that", " nevertheless", " works")
WORDS = ((0,), (1,), (2,), (3, 4), (5,), (6,), (7,), (8,))  # overwrought is two tokens


def sample(point):
    raw = (0.02, 0.05, 0.2, 0.03, 0.02, 0.06, 0.04, 0.03, 0.05)
    best = (0.01, -0.31, -0.02, -0.2, -0.14, 0.02, 0.01, 0.38, 0.62)
    readings = (
        Reading("raw_attention", raw, False, (2, 5), "POSITIVE", 0.81),
        Reading("attn_lrp", best, True, (7, 8), "NEGATIVE", 0.12),
    )
    truth = Truth(
        (0.01, 0.25, 0.02, 0.1, 0.08, 0.02, None, 0.3, 0.5),
        (0.01, -0.24, -0.01, -0.1, -0.08, 0.02, None, 0.29, 0.5),
        0.31,
    )
    known = {"truth": truth, "licence": licence(), "words": WORDS, "true_label": "NEGATIVE"}
    return Sample(point, TOKENS, "POSITIVE", 0.87, "mask", readings, **known)


def licence():
    rows = tuple(
        RemovalLicence(
            removal, MAY_NOT, 0.06, 0.3, 0.21, 0.2, 0.9, 0.6, 0.55, enough=(8,), needed=(7, 8)
        )
        for removal in REMOVALS[:2]
    )
    return Licence(MAY_NOT, why(MAY_NOT, rows, len(TOKENS)), rows, False, False)


def group(name, removal, value, texts, without_room=0):
    return GroupStanding(name, removal, around(value, 0.1, texts), without_room, texts)


def verdict():
    return Verdict(
        word="not supported",
        sentence="The attention weights do not show where the prediction rests: read as "
        "raw_attention, when tokens are deleted or masked, they find at most 29 % of what matters "
        "(0 %: no more than chance; 100 %: as much as can be found), and 30 % is asked.",
        which_way="The weights have no sign, so they cannot say whether a token speaks for the "
        "prediction or against it: of what raw_attention highlights, 61 % (58 % to 64 %) speaks "
        "for it and 39 % against it; of all tokens, 60 % for it.",
        next_step="Do not show heat maps of the weights alone. Use gradient instead, which finds "
        "more: `attlas explain --method gradient TEXT`. To see whether a map of the weights holds "
        "for one text: `attlas explain --licence --method raw_attention TEXT`.",
        method="raw_attention",
        bounds={
            removal: Bounds(
                Figure(0.24, 0.19, 0.29, TEXTS),
                Figure(0.11, 0.02, 0.2, TEXTS),
                Figure(-0.47, -0.56, -0.38, TEXTS),
                "other_text raw_attention" if removal == "delete" else "position",
                "gradient",
                Figure(0.3, 0.28, 0.33, TEXTS),
                310.5,
                "against",
                "they find at most 29 % of what matters, and 30 % is asked",
            )
            for removal in REMOVALS[:2]
        },
        texts=TEXTS,
        used=around(0.12, 0.03),
        same_word=0.8,
        directions=tuple(
            Direction(removal, around(0.61, 0.03), around(0.6, 0.02)) for removal in REMOVALS[:2]
        ),
        by_group=(
            group("predicted NEGATIVE", "delete", 0.2, 180, 12),
            group("predicted NEGATIVE", "mask", 0.22, 180),
            group("predicted POSITIVE", "delete", 0.27, 220),
        ),
        grid=tuple(
            GridWord(floor, margin, "partly" if floor < 0.3 else "not supported")
            for floor in (0.2, 0.3)
            for margin in (0.05, 0.1, 0.15)
        ),
        readings=(
            OtherReading("attn_lrp", "P", around(0.66, 0.07), around(0.42, 0.09), True),
            OtherReading("attattr", "V", around(0.58, 0.07), around(0.34, 0.09), True),
            OtherReading("globenc", "V", around(0.29, 0.08), around(0.05, 0.09), False),
        ),
        notes=("80 % of the splits into halves give this word; the others give another.",),
        plain="No. The words that attention marks are mostly not the words that the model's "
        "answers rest on.",
    )


def findings():
    return (
        Finding(
            "Attention finds less than half of what matters",
            "Read as raw_attention, they find 0.24 when tokens are deleted: 0 is chance, 1 as much "
            "as can be found.",
            around(0.24, 0.07, 200),
            "standing",
            "Which way a token pulls: weights have no sign.",
            mark=0.0,
        ),
        Finding(
            "Surely less than gradient finds without attention",
            "Beside gradient, the weights find −0.47 when tokens are deleted: surely less.",
            Figure(-0.47, -0.56, -0.38, 200),
            "verdict",
            "That gradient is right: it is only more right, by the same removals.",
            span=(-1.0, 1.0),
            mark=-0.1,
            difference=True,
        ),
        Finding(
            "The methods do not agree",
            "Two methods agree at τ = 0.31 on average over the texts.",
            around(0.31, 0.02),
            "agreement",
            "Which of them is right: disagreement alone makes none of them wrong.",
            span=(-1.0, 1.0),
            mark=0.5,
        ),
        Finding(
            "How tokens are removed changes the order little",
            "Between delete and mask the order of the methods correlates at 0.94.",
            Figure(0.94, 0.88, 0.97, TEXTS),
            "removals",
            "That either removal leaves the text one that the model knows.",
            span=(-1.0, 1.0),
            mark=0.0,
        ),
    )


def report(**changes):
    pairs = (("delete", "mask", 0.94), ("delete", "knock_out", 0.81), ("mask", "knock_out", 0.85))
    given = {
        "model": "minilm-sst2",
        "task": "sequence classification",
        "data": DataRecord(
            "reviews.csv",
            TEXTS,
            ("NEGATIVE", "POSITIVE"),
            Figure(0.912, 0.88, 0.938, TEXTS),
            {"empty text": 12, "longer than 512 tokens": 3},
            (LeftOutRow("17", "empty text"), LeftOutRow("204", "longer than 512 tokens", "When I")),
        ),
        "verdict": verdict(),
        "findings": findings(),
        "table": table(),
        "standings": standings(),
        "panels": tuple(
            panel(measure, removal)
            for measure in ("comprehensiveness", "sufficiency")
            for removal in REMOVALS
        ),
        "agreement": agreement(),
        "removals": tuple(
            RemovalPair(measure, one, other, Figure(value, value - 0.07, value + 0.03, TEXTS))
            for measure in ("comprehensiveness", "sufficiency")
            for one, other, value in pairs
        ),
        "unusual": (
            UnusualTexts("delete", Figure(0.51, 0.44, 0.58, 100), "the same texts cut short"),
            UnusualTexts(
                "mask",
                Figure(0.86, 0.79, 0.92, 100),
                "the same texts cut short",
                "such texts are strange to this model: trust delete more",
            ),
        ),
        "examples": (sample("The comma is attended to; the verb decides."),),
        "trials": (
            TrialSection(
                "permutation",
                "readout: last layer, all heads, the readout row, content keys",
                "Shuffled, the attention moves the output by a tenth of what losing it does.",
                (TrialFigure("total variation", around(0.03, 0.01, 100), 0.3),),
                "That the attention of other layers is as idle.",
                trial_plots(),
            ),
        ),
        "plausibility": Finding(
            "Agreement with people",
            "attn_lrp ranks what people marked best, at an average precision of 0.57.",
            around(0.57, 0.05, 120),
            "plausibility",
            "What people would mark says nothing of what the model uses.",
        ),
        "does_not_show": (
            "The figures hold for this checkpoint and these texts, not for a kind of model.",
            "Every removal makes a text that nobody wrote.",
        ),
        "settings": {
            "shuffles": 20,
            "rules": {"floor": 0.3, "margin": 0.1, "least_use": 0.02},
            "removals": list(REMOVALS),
        },
        "versions": {"attlas": "0.1.0", "torch": "2.13", "transformers": "5.22.2"},
        "costs": (Cost("explanations", 148.0, TEXTS), Cost("removals", 312.5, TEXTS)),
        "seed": 0,
        "seconds": 492.0,
        "command": "attlas audit --model minilm-sst2 --data reviews.csv --text review",
    }
    return Report(**{**given, **changes})
