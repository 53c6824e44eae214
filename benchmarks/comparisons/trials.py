"""Trials: permutations in every layer in one pass, and adversarial attention of many texts at once.

The peer of `permutation` changes one layer and runs the whole model, once for each layer and
repeat; it is timed on a share of its runs and scaled up. Both draw the same permutations. The peer
of `adversarial_attention` searches text by text.
"""

from collections.abc import Iterator
from functools import partial

import torch
from comparing import Row, Setup, largest_difference
from shapes import bert, one_question, texts_of

import attlas
from attlas.models.asking.question import Question
from attlas.models.tap.edits import Edit
from attlas.trials import OpenSite, Scope
from attlas.trials.rewriting.rewritings import shuffle_columns
from attlas.trials.rewriting.rewritten_answers import RewritingPlan, run_plan
from attlas.trials.support.outputs import distributions, total_variation

SHARE = 10  # repeats that the loop is timed on


def compare(setup: Setup) -> Iterator[Row]:
    yield _permutation(setup)
    yield _adversary(setup)


def _permutation(setup: Setup) -> Row:
    subject = bert(setup.device, layers=setup.size(12, 2))
    tokens, repeats = setup.size((64, 100), (12, 10))
    (text,) = texts_of(subject, [tokens])
    question = one_question(subject, text)
    plan = RewritingPlan("permutation of columns", shuffle_columns, repeats, 0)
    scope = Scope("layer")
    opened = scope.open_sites(question)
    middle, numbers = len(opened) // 2, range(min(SHARE, repeats))
    work = partial(attlas.try_trial, subject, [text], "permutation", scope="layer", repeats=repeats)
    inner = partial(run_plan, question, scope, opened, plan)
    loop = partial(_loop, question, opened[middle], plan, numbers)
    ours, behind, part = setup.in_turns(work, inner, loop, rounds=1)
    found = torch.from_numpy(inner()[middle])[: len(numbers), 0, 0]
    return Row(
        f"the trial `permutation`, {repeats} in each of {len(opened)} layers, {tokens} tokens",
        "a pass of the whole model for each",
        ours,
        part * len(opened) * repeats / len(numbers),
        behind,
        largest_difference([found], [loop()]),
        "of a distance",
    )


def _loop(
    question: Question, opened: OpenSite, plan: RewritingPlan, numbers: range
) -> torch.Tensor:
    """How far the answer moves in each repeat, with one pass of the whole model each."""
    own = distributions(question)
    moved = []
    for number in numbers:
        with question.subject.tap(_once(question, opened, plan, number), sites=()):
            moved.append(total_variation(distributions(question), own))
    return torch.cat(moved).cpu()


def _once(question: Question, opened: OpenSite, plan: RewritingPlan, number: int) -> Edit:
    """The edit of one repeat at one site."""

    def change(weights: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        draws = plan.draws(question, opened.site, [number])
        return plan.rewriting(weights[None], opened.entries(visible), draws)[0]

    return Edit("one", change).at(layer=opened.site.layer)


def _adversary(setup: Setup) -> Row:
    subject = attlas.load("sentiment", device=setup.device)
    count, steps, rounds = setup.size((64, 20, 80), (3, 2, 2))
    texts = texts_of(subject, [20] * count)
    work = partial(
        attlas.try_trial, subject, trial="adversarial_attention", steps=steps, rounds=rounds
    )
    work(texts[:2])
    ours, together = setup.timed(partial(work, texts))
    peer, alone = setup.timed(lambda: [work([text]) for text in texts])
    mean = sum(each.figures[0].figure.value for each in alone) / count
    return Row(
        f"the trial `adversarial_attention` of {count} texts",
        "one by one",
        ours,
        peer,
        difference=abs(mean - together.figures[0].figure.value),
        unit="of the mean distance",
    )
