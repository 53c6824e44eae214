"""The study `bias`: which heads carry a bias from a prompt to a pronoun.

Vig et al., "Investigating Gender Bias in Language Models Using Causal Mediation Analysis", NeurIPS
2020: the attention of a head is replaced by that under another prompt.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.models.asking.reading import read_attention
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.models.tap import edits
from attlas.models.tap.call import Call
from attlas.models.tap.edits import Edit
from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    Findings,
    at_least,
    at_most,
    compared,
    decided,
    over_texts,
    untested,
)
from attlas.studies.support.prompt_pairs import PromptPair, read_pairs
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

SOURCE = "Vig et al. 2020, abstract"
AT_ONCE = 512  # rows of a batch: texts times heads
TOP = 0.1  # the share of the heads that a sparse effect rests on
DIFFERS = (
    "The model is the one named in the settings, not GPT-2.",
    "An effect is a change of the log-odds of the two answers; the paper takes the change of their "
    "ratio, divided by the ratio.",
    "The prompts are written for this project; a word is exchanged for “man” or “woman” only where "
    "both prompts have the same number of tokens, since attention is replaced place by place.",
    "Only attention is a mediator here; the paper looks at neurons too.",
)


@study(
    about="the indirect effect of each head, its attention replaced by that of another prompt",
    question="Which heads carry a bias from the prompt to the answer?",
    paper="Vig et al. 2020, arXiv:2004.12265",
    quick={"model": "recall", "prompts": "recall", "count": 12},
    takes=(3, 2361),
)
def bias(
    run: Run,
    *,
    model: str = "recall",
    prompts: str = "professions",
    count: int = 200,
    seed: int = 0,
) -> Findings:
    """Replace the attention of each head by that under the other prompt of a pair.

    Args:
        model: A causal language model: a folder, a GGUF file, or the built-in `recall`.
        prompts: `professions`, `recall`, or a file of JSON lines with one, other, answer and
            instead_of; if not given, those of the model's name, or else professions.
        count: The most pairs to use.
        seed: Decides which pairs are drawn.
    """
    named = prompts or ("recall" if model == "recall" else "professions")
    pairs = read_pairs(named, count, seed)
    found = run.kept("effects", lambda: measure_pairs(load(model, device=run.device), pairs))
    if not found["total"]:
        raise UsageError(
            f"no pair of {prompts} has prompts of the same number of tokens in {model}"
        )
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=(_table(found),),
        plots=tuple(_plots(found)),
        seeds=(seed,),
        notes=(f"{found['left out']} pairs were left out: their prompts differ in length.",),
        details=found,
    )


def measure_pairs(subject: Subject, pairs: Sequence[PromptPair]) -> dict[str, Any]:
    """The effects on the log-odds of each pair that has prompts of equal length."""
    equal = [each for each in pairs if _tokens(subject, each.one) == _tokens(subject, each.other)]
    requests = [Request(target=each.answer, contrast=each.instead_of) for each in equal]
    found: dict[str, Any] = {"left out": len(pairs) - len(equal), "sites": _site_names(subject)}
    parts = []
    for first in subject.ask([each.one for each in equal], requests) if equal else ():
        order = list(first.order)
        (second,) = subject.ask(
            [equal[number].other for number in order], [requests[number] for number in order]
        )
        parts.append(_effects(first, second) | {"order": order})
    for name in ("own", "total", "all heads", "direct"):
        found[name] = [value for part in parts for value in part[name].tolist()]
    found["by head"] = [rows for part in parts for rows in part["by head"]]
    found["kinds"] = [equal[number].kind for part in parts for number in part["order"]]
    return found


def _effects(first: Question, second: Question) -> dict[str, Any]:
    """Effects of one batch, `[text]`, and of each head, `[text, site, head]`."""
    own, other = _log_odds(first), _log_odds(second)
    theirs, ours = read_attention(second), read_attention(first)
    whole = [_replace(call.weights, call.site.kind, call.site.layer) for call in theirs]
    held = [_replace(call.weights, call.site.kind, call.site.layer) for call in ours]
    by_head = [_by_head(first, call) - own[:, None] for call in theirs]
    return {
        "own": own,
        "total": other - own,
        "all heads": _log_odds(first, whole) - own,
        "direct": _log_odds(second, held) - own,
        "by head": [[site[row].tolist() for site in by_head] for row in range(len(own))],
    }


def _by_head(question: Question, theirs: Call) -> NDArray[np.float64]:
    """The log-odds with one head of a site replaced, `[text, head]`; all heads share batches."""
    site = theirs.site
    texts, heads = np.divmod(np.arange(len(question) * site.heads), site.heads)
    found = []
    for start in range(0, len(texts), AT_ONCE):
        rows = texts[start : start + AT_ONCE].tolist()
        chosen = torch.tensor(heads[start : start + AT_ONCE], device=theirs.weights.device)
        is_head = torch.nn.functional.one_hot(chosen, site.heads).bool()[:, :, None, None]
        others = theirs.weights[rows]

        def change(own: Tensor, is_head: Tensor = is_head, others: Tensor = others) -> Tensor:
            return torch.where(is_head, others.to(own), own)

        edit = edits.apply(change).at(kind=site.kind, layer=site.layer)
        found.append(_log_odds(question.rows(rows), edit))
    return np.concatenate(found).reshape(len(question), site.heads)


def _replace(weights: Tensor, kind: str, layer: int) -> Edit:
    return edits.replace(weights).at(kind=kind, layer=layer)


def _log_odds(question: Question, change: Edit | Sequence[Edit] = ()) -> NDArray[np.float64]:
    """The logit of the answer less that of the other one, `[text]`."""
    return target_scores(question, "logit", change).double().cpu().numpy()


def _tokens(subject: Subject, text: str) -> int:
    return len(subject.encode(text).tokens[0])


def _site_names(subject: Subject) -> list[str]:
    return [site.name for site in subject.sites]


def mean_by_head(found: Mapping[str, Any]) -> NDArray[np.float64]:
    """The mean effect of each head over pairs, `[site, head]`."""
    mean: NDArray[np.float64] = np.mean(np.array(found["by head"], dtype=np.float64), axis=0)
    return mean


def concentration(effects: NDArray[np.float64], share: float = TOP) -> float:
    """How much of the sum of absolute effects the strongest heads hold: this share of all."""
    sizes = np.sort(np.abs(effects).ravel())[::-1]
    count = max(1, round(share * len(sizes)))
    total = sizes.sum()
    return float(sizes[:count].sum() / total) if total > 0 else float("nan")


def claims_on(found: Mapping[str, Any]) -> list[Claim]:
    """The claims of the paper, decided on these effects."""
    effects = mean_by_head(found)
    total, joint, direct = (
        np.array(found[name], dtype=np.float64) for name in ("total", "all heads", "direct")
    )
    summed = np.array(found["by head"], dtype=np.float64).sum(axis=(1, 2))
    scale = float(np.abs(total.mean()))
    opposed = float(np.abs(effects[effects * total.mean() < 0]).sum() / np.abs(effects).sum())
    gap = abs(float(joint.mean() + direct.mean() - total.mean())) / scale
    return [
        _biased(found),
        decided(
            "Effects are sparse: a small part of the heads carries most of them",
            SOURCE,
            at_least(0.5),
            Figure(concentration(effects)),
            found=f"The figure is the share that {TOP:.0%} of the heads hold.",
            over="heads",
        ),
        decided(
            "Effects are amplified by some components and repressed by others",
            SOURCE,
            at_least(0.1),
            Figure(opposed),
            found="The figure is the share of effects that go the other way. All heads together "
            f"move the answer by {joint.mean():.2f}; the effects of each add up to "
            f"{summed.mean():.2f}.",
            over="heads",
        ),
        decided(
            "The total effect decomposes into a direct and an indirect one",
            SOURCE,
            at_most(0.25),
            Figure(gap),
            found="The figure is how far their sum is from the total, as a share of it.",
            over="pairs",
        ),
    ]


def _biased(found: Mapping[str, Any]) -> Claim:
    said = "The model links professions with a gender"
    female, male = (
        [own for own, kind in zip(found["own"], found["kinds"], strict=True) if kind == wanted]
        for wanted in ("female", "male")
    )
    if not female or not male:
        return untested(said, SOURCE, "these prompts are not about professions")
    # `own` is he less she for the female ones, and she less he for the male ones.
    figure = over_texts([-each for each in (*female, *male)])
    return decided(
        said,
        SOURCE,
        at_least(0.0),
        figure,
        found="The figure is the log-odds of the pronoun that goes with the profession.",
        over="prompts",
    )


def _table(found: Mapping[str, Any]) -> ComparedTable:
    names = {
        "total effect": "total",
        "indirect, attention of all heads": "all heads",
        "direct, attention held": "direct",
    }
    ours = {shown: over_texts(found[name]) for shown, name in names.items()}
    reading = "Changes of the log-odds, means over pairs. The paper gives no such figures."
    return compared("Effects", reading, ours, {}, over="pairs")


def _plots(found: Mapping[str, Any]) -> list[plots.Plot]:
    effects = mean_by_head(found)
    by_layer = np.abs(effects).sum(axis=1)
    return [
        plots.matrix(
            "Indirect effect of each head",
            found["sites"],
            [str(head) for head in range(effects.shape[1])],
            effects,
            x_label="head",
            y_label="layer",
            reading="How far the answer moves when this head alone attends as under the other "
            "prompt.",
        ),
        plots.curve(
            "Indirect effects by layer",
            list(range(len(by_layer))),
            {"sum of absolute effects": by_layer},
            x_label="layer",
            y_label="change of the log-odds",
            reading="High: layers whose heads carry the difference between the prompts.",
        ),
        plots.violins(
            "Effects over pairs",
            {name: found[name] for name in ("total", "all heads", "direct")},
            x_label="effect",
            y_label="change of the log-odds",
            reading="An outline is wide where many pairs are.",
        ),
    ]
