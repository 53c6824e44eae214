"""Adversarial keys: can a network exchange a model's keys for quite others that say the same?"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.mathematics.divergences import entropy, jensen_shannon
from attlas.mathematics.ranking import average_precision
from attlas.models.asking.question import Question
from attlas.models.encoding.target import Target
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.results.support import plots
from attlas.shapes import TextSites, TextValues, TokenVector
from attlas.tokens import Tokens, overlap
from attlas.trials.searching.key_adversary import (
    KeyAdversary,
    KeyBatch,
    KeyTraining,
    loss_of,
    make_key_batch,
    moved,
    run,
)
from attlas.trials.searching.leeway import Leeway, answers_of, leeways, mean_of_rows, read_sites
from attlas.trials.support.findings import estimates_of, mean_of, written
from attlas.trials.support.halves import among, halves, note_on, numbers_of
from attlas.trials.support.outputs import is_other, total_variation
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial

AGREES, CHANGE, LOSS = "agreement", "change of the output", "change of the loss"
DISTANCE, FAR = "JSD of the attention", "distance of the keys"
WIDTH_BEFORE, WIDTH_AFTER = "keys attended to", "keys attended to, adversarial"
TOP = "same first key"
RIGHT, RIGHT_BEFORE = "accuracy, adversarial", "accuracy"
MARKED, MARKED_BEFORE = "AUPRC of the marked, adversarial", "AUPRC of the marked"


@trial(
    cost="expensive",
    paper="“Is Attention Explanation in Transformers?” (poster)",
    reading="Can one small network exchange the keys of the whole model, on texts it was not "
    "trained on, for others that are far off and leave the answers as they were?",
    does_not_show="That the model's own attention is unfaithful: the network is trained to find "
    "what the answers put up with, and no model was trained to have its keys.",
    needs=("attention", "gradients"),
)
def adversarial_keys(
    questions: Sequence[Question],
    scope: Scope = Scope("all"),  # noqa: B008
    *,
    seed: int = 0,
    alpha: float = 0.5,
    epochs: int = 10,
    rate: float = 0.001,
    reach: float = 2.0,
    gold: bool = False,
    examples: Sequence[Example] = (),
) -> TrialOutcome:
    """Train a network on half of the texts to make other keys, and judge those of the other half.

    Its loss is α · cross-entropy − (1 − α) · distance, the distance in lengths of each key and at
    most `reach`. The cross-entropy is with what the model says itself, or where `gold` with the
    labels of the `examples`, which are by text; words marked in them are held to the attention.
    """
    if not 0 <= alpha <= 1 or reach <= 0:
        raise UsageError(f"alpha is between 0 and 1, not {alpha}, and reach above 0, not {reach}")
    if gold and not examples:
        raise UsageError("gold labels are asked for, but no examples are given to have them")
    if scope.frozen:
        raise UsageError("the layers above exchanged keys attend anew: the scope cannot be frozen")
    read_sites(questions[0], scope)
    kept, judged = halves(questions)
    batches = [make_key_batch(question, scope) for question in kept]
    wanted = [_targets(each.question, examples if gold else ()) for each in batches]
    adversary = KeyAdversary(batches, reach, seed)
    adversary.train(batches, wanted, KeyTraining(alpha, epochs, rate))
    asked = [make_key_batch(question, scope) for question in judged]
    found = [_judge(batch, adversary, examples, gold) for batch in asked]
    figures = {name: np.concatenate([each[0][name] for each in found]) for name in found[0][0]}
    by_layer = np.concatenate([each[1] for each in found])
    sites = [site.name for site in asked[0].sites]
    drawn = _plots(figures, by_layer, sites)
    return TrialOutcome(
        figures={name: among(each, judged, questions) for name, each in figures.items()},
        texts=numbers_of(questions),
        sentence=_sentence(figures, reach),
        ceilings={AGREES: 1.0, DISTANCE: float(np.log(2)), FAR: reach, TOP: 1.0},
        plots=drawn,
        notes=(f"Scope: {scope}.", note_on(kept, judged)),
        details={
            "estimates": estimates_of(figures),
            "JSD by layer": {bar["name"]: bar["value"] for bar in drawn[0]["bars"]},
            "alpha": alpha,
            "epochs": epochs,
            "reach": reach,
            "labels": "gold" if gold else "the model's own",
        },
    )


def _targets(question: Question, examples: Sequence[Example]) -> tuple[Target, ...]:
    """What is to be said of each text: what the model says, or the label of its example."""
    if not examples:
        return question.targets
    found = []
    for text, target in zip(question.order, question.targets, strict=True):
        label, names = examples[text].label, question.subject.labels
        if label not in names or len(target.picks) != 1:
            raise UsageError(f"the label {label!r} of text {text} is none of {', '.join(names)}")
        place, _ = target.picks[0]
        found.append(replace(target, name=str(label), picks=((place, names.index(str(label))),)))
    return tuple(found)


def _judge(
    batch: KeyBatch, adversary: KeyAdversary, examples: Sequence[Example], gold: bool
) -> tuple[Mapping[str, TextValues], TextSites]:
    """The figures of each text of a batch, and its divergences `[text, site]`."""
    question = batch.question
    with torch.no_grad(), evaluation_mode(question.subject.model):
        keys = adversary.keys(batch)
        other = run(batch, keys)
    given = leeways(batch.opened, batch.clean.calls)
    own = [each.own for each in given]
    new = [each.shares_of(other.calls[each.site].weights) for each in given]
    apart = [jensen_shannon(*pair) for pair in zip(own, new, strict=True)]
    before, after = (answers_of(question, each.logits)[0] for each in (batch.clean, other))
    wanted = _targets(question, examples if gold else ())
    losses = [loss_of(wanted, each.logits) for each in (batch.clean, other)]
    figures = {
        AGREES: 1.0 - is_other(after, before).double(),
        CHANGE: total_variation(after, before),
        LOSS: losses[1] - losses[0],
        DISTANCE: mean_of_rows(given, apart),
        FAR: moved(batch, keys),
        WIDTH_BEFORE: mean_of_rows(given, [entropy(each).exp() for each in own]),
        WIDTH_AFTER: mean_of_rows(given, [entropy(each).exp() for each in new]),
        TOP: mean_of_rows(given, [_same_first(*pair) for pair in zip(own, new, strict=True)]),
    }
    arrays = {name: values.double().cpu().numpy() for name, values in figures.items()}
    by_layer = [mean_of_rows([one], [far]) for one, far in zip(given, apart, strict=True)]
    rows = {MARKED_BEFORE: own[-1], MARKED: new[-1]}
    arrays.update({name: _marked(question, given[-1], row, examples) for name, row in rows.items()})
    arrays.update(_accuracy(question, {RIGHT_BEFORE: before, RIGHT: after}, examples))
    known = {name: values for name, values in arrays.items() if examples or name not in rows}
    return known, torch.stack(by_layer, dim=1).double().cpu().numpy()


def _same_first(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Whether the most attended key is the same."""
    return (first.argmax(dim=-1) == second.argmax(dim=-1)).double()


def _accuracy(
    question: Question, answers: Mapping[str, torch.Tensor], examples: Sequence[Example]
) -> dict[str, TextValues]:
    """Whether each text is given the label of its example, where there is one."""
    labels = question.subject.labels if examples else []
    if not examples or any(examples[text].label not in labels for text in question.order):
        return {}
    right = [labels.index(str(examples[text].label)) for text in question.order]
    return {
        name: (each[:, 0].argmax(dim=-1).cpu().numpy() == right).astype(np.float64)
        for name, each in answers.items()
    }


def _marked(
    question: Question, given: Leeway, shares: torch.Tensor, examples: Sequence[Example]
) -> TextValues:
    """How well the highest attention, over heads and rows, finds what is marked in each text."""
    stream = question.inputs.queries_and_keys(given.site.kind)[1]
    found = np.full(len(question), np.nan)
    for row, text in enumerate(question.order):
        spans = examples[text].spans if examples else ()
        tokens: Tokens = question.inputs.tokens[row].select(stream.positions)
        free = given.free[row].any(dim=(0, 1)).cpu().numpy()
        marks = np.array([any(overlap(at, s) for s in spans) for at in map(_place, tokens.offsets)])
        scores: TokenVector = shares[row].mean(dim=(0, 1)).double().cpu().numpy()[free]
        if marks[free].any() and not marks[free].all():
            found[row] = average_precision(scores, marks[free])
    return found


def _place(offset: tuple[int, int] | None) -> tuple[int, int]:
    """Where a token stands; nowhere, if it stands for no text."""
    return offset or (0, 0)


def _sentence(figures: Mapping[str, TextValues], reach: float) -> str:
    wide, narrow = (np.nanmean(figures[name]) for name in (WIDTH_BEFORE, WIDTH_AFTER))
    return (
        f"With keys that are {np.nanmean(figures[FAR]):.2f} of their length off (at most "
        f"{reach:g}), the model gives the same answer to "
        f"{np.nanmean(figures[AGREES]):.0%} of {len(figures[AGREES])} texts, and its attention is "
        f"{written(mean_of(figures[DISTANCE]))} from its own (Jensen–Shannon); a row attends to "
        f"{narrow:.1f} keys where it did to {wide:.1f}, and its first key is the same in "
        f"{np.nanmean(figures[TOP]):.0%}."
    )


def _plots(
    figures: Mapping[str, TextValues], by_layer: TextSites, sites: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    means = dict(zip(sites, np.nanmean(by_layer, axis=0), strict=True))
    return (
        plots.bars(
            "How far adversarial keys move the attention, by layer",
            means,
            x_label=DISTANCE,
            reading="Long bars are layers whose attention became another while the answers stayed; "
            "the most there can be is 0.69.",
        ),
        plots.scatter(
            "Is adversarial attention the model's own without the noise?",
            {"texts": (figures[WIDTH_BEFORE], figures[WIDTH_AFTER])},
            x_label=WIDTH_BEFORE,
            y_label=WIDTH_AFTER,
            reading="A point is a text; below the diagonal the adversarial attention is on fewer "
            "keys than the model's own, which alone does not say that they are the right ones.",
        ),
    )
