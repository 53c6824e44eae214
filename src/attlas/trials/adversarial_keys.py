"""Adversarial keys: do the answers stay when a network makes very different keys?"""

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
    key_distance,
    loss_of,
    make_key_batch,
    run_with,
)
from attlas.trials.searching.leeway import (
    Leeway,
    answers_of,
    find_leeways,
    mean_of_rows,
    read_sites,
)
from attlas.trials.support.findings import estimate_mean, estimates_as_json, in_words
from attlas.trials.support.outputs import chooses_differently, total_variation
from attlas.trials.support.scope import Scope
from attlas.trials.support.text_halves import over_all_texts, split_note, split_texts, text_numbers
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
    reading="Can one small network replace the keys of the whole model, on texts it was not "
    "trained on, by very different ones that leave the answers the same?",
    does_not_show="That the model's own attention is unfaithful: the network is trained to find "
    "what the answers tolerate, and no model was trained to have its keys.",
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
    """Train a network on half of the texts to make other keys, and test it on the other half.

    Its loss is α · cross-entropy − (1 − α) · distance; the distance of a key is measured in its own
    length, and is at most `reach`. The cross-entropy is with the model's own answers, or with
    `gold` with the labels of the `examples`, one for each text. Words that are marked in the
    examples are compared with the attention.
    """
    if not 0 <= alpha <= 1 or reach <= 0:
        raise UsageError(f"alpha must be from 0 to 1, not {alpha}, and reach above 0, not {reach}")
    _check_examples(questions, examples, gold)
    if scope.frozen:
        raise UsageError(
            "adversarial_keys takes no frozen scope: the layers above recompute their attention"
        )
    read_sites(questions[0], scope)
    train, tested = split_texts(questions)
    batches = [make_key_batch(question, scope) for question in train]
    targets = [_targets(each.question, examples if gold else ()) for each in batches]
    adversary = KeyAdversary(batches, reach, seed)
    adversary.train(batches, targets, KeyTraining(alpha, epochs, rate))
    asked = [make_key_batch(question, scope) for question in tested]
    found = [_judge(batch, adversary, examples, gold) for batch in asked]
    figures = {name: np.concatenate([each[0][name] for each in found]) for name in found[0][0]}
    if RIGHT in figures and np.isnan(figures[RIGHT]).all():
        del figures[RIGHT], figures[RIGHT_BEFORE]
    by_layer = np.concatenate([each[1] for each in found])
    sites = [site.name for site in asked[0].sites]
    drawn = _plots(figures, by_layer, sites)
    return TrialOutcome(
        figures={name: over_all_texts(each, tested, questions) for name, each in figures.items()},
        texts=text_numbers(questions),
        sentence=_sentence(figures, reach),
        ceilings={AGREES: 1.0, DISTANCE: float(np.log(2)), FAR: reach, TOP: 1.0},
        plots=drawn,
        notes=(f"Scope: {scope}.", split_note(train, tested)),
        details={
            "estimates": estimates_as_json(figures),
            "JSD by layer": {bar["name"]: bar["value"] for bar in drawn[0]["bars"]},
            "alpha": alpha,
            "epochs": epochs,
            "reach": reach,
            "labels": "gold" if gold else "the model's own",
        },
    )


def _check_examples(questions: Sequence[Question], examples: Sequence[Example], gold: bool) -> None:
    if gold and not examples:
        raise UsageError("gold=True needs examples with labels, and no examples are given")
    last = max(text_numbers(questions))
    if examples and last >= len(examples):
        raise UsageError(f"text {last} has no example: there are {len(examples)}")


def _targets(question: Question, examples: Sequence[Example]) -> tuple[Target, ...]:
    """The target of each text: the model's own answer, or the label of its example."""
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
    """The figures of each text of a batch, and divergences by site, `[text, site]`."""
    question = batch.question
    with torch.no_grad(), evaluation_mode(question.subject.model):
        keys = adversary.keys(batch)
        other = run_with(batch, keys)
    leeways = find_leeways(batch.open_sites, batch.clean.calls)
    own = [each.own for each in leeways]
    new = [each.shares_of(other.calls[each.site].weights) for each in leeways]
    apart = [jensen_shannon(*pair) for pair in zip(own, new, strict=True)]
    before, after = (answers_of(question, each.logits)[0] for each in (batch.clean, other))
    targets = _targets(question, examples if gold else ())
    losses = [loss_of(targets, each.logits) for each in (batch.clean, other)]
    figures = {
        AGREES: 1.0 - chooses_differently(after, before).double(),
        CHANGE: total_variation(after, before),
        LOSS: losses[1] - losses[0],
        DISTANCE: mean_of_rows(leeways, apart),
        FAR: key_distance(batch, keys),
        WIDTH_BEFORE: mean_of_rows(leeways, [entropy(each).exp() for each in own]),
        WIDTH_AFTER: mean_of_rows(leeways, [entropy(each).exp() for each in new]),
        TOP: mean_of_rows(leeways, [_same_first(*pair) for pair in zip(own, new, strict=True)]),
    }
    arrays = {name: values.double().cpu().numpy() for name, values in figures.items()}
    by_layer = [mean_of_rows([one], [far]) for one, far in zip(leeways, apart, strict=True)]
    rows = {MARKED_BEFORE: own[-1], MARKED: new[-1]}
    arrays.update(
        {name: _marked(question, leeways[-1], row, examples) for name, row in rows.items()}
    )
    arrays.update(_accuracy(question, {RIGHT_BEFORE: before, RIGHT: after}, examples))
    known = {name: values for name, values in arrays.items() if examples or name not in rows}
    return known, torch.stack(by_layer, dim=1).double().cpu().numpy()


def _same_first(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Whether the most attended key is the same."""
    return (first.argmax(dim=-1) == second.argmax(dim=-1)).double()


def _accuracy(
    question: Question, answers: Mapping[str, torch.Tensor], examples: Sequence[Example]
) -> dict[str, TextValues]:
    """Whether each text is given its label; NaN where it has none that the model knows."""
    if not examples:
        return {}
    names, labels = question.subject.labels, [examples[text].label for text in question.order]
    right = np.array([names.index(str(each)) if each in names else -1 for each in labels])
    return {
        name: np.where(right < 0, np.nan, each[:, 0].argmax(dim=-1).cpu().numpy() == right)
        for name, each in answers.items()
    }


def _marked(
    question: Question, leeway: Leeway, shares: torch.Tensor, examples: Sequence[Example]
) -> TextValues:
    """How well the attention, a mean over heads and rows, ranks the marked words of each text."""
    stream = question.inputs.queries_and_keys(leeway.site.kind)[1]
    found = np.full(len(question), np.nan)
    for row, text in enumerate(question.order):
        spans = examples[text].spans if examples else ()
        tokens: Tokens = question.inputs.tokens[row].select(stream.positions)
        free = leeway.free[row].any(dim=(0, 1)).cpu().numpy()
        marks = np.array([any(overlap(at, s) for s in spans) for at in map(_place, tokens.offsets)])
        scores: TokenVector = shares[row].mean(dim=(0, 1)).double().cpu().numpy()[free]
        if marks[free].any() and not marks[free].all():
            found[row] = average_precision(scores, marks[free])
    return found


def _place(offset: tuple[int, int] | None) -> tuple[int, int]:
    """The place of a token in the text; an empty one if it has none."""
    return offset or (0, 0)


def _sentence(figures: Mapping[str, TextValues], reach: float) -> str:
    wide, narrow = (np.nanmean(figures[name]) for name in (WIDTH_BEFORE, WIDTH_AFTER))
    return (
        f"With keys that are moved by {np.nanmean(figures[FAR]):.2f} of their length (at most "
        f"{reach:g}), the model gives the same answer to "
        f"{np.nanmean(figures[AGREES]):.0%} of {len(figures[AGREES])} texts, and its attention is "
        f"{in_words(estimate_mean(figures[DISTANCE]))} from its own (Jensen–Shannon). A row "
        f"attends to {narrow:.1f} keys instead of {wide:.1f}, and its first key is the same in "
        f"{np.nanmean(figures[TOP]):.0%} of the rows."
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
            reading="Long bars are layers whose attention changed while the answers stayed; the "
            "largest possible value is 0.69.",
        ),
        plots.scatter(
            "Is adversarial attention a sharper version of the model's own?",
            {"texts": (figures[WIDTH_BEFORE], figures[WIDTH_AFTER])},
            x_label=WIDTH_BEFORE,
            y_label=WIDTH_AFTER,
            reading="A point is a text. Below the diagonal, the adversarial attention is on fewer "
            "keys than the model's own; that alone does not make them the right keys.",
        ),
    )
