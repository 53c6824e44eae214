"""What a permutation trial costs: branches in every layer, compared with a plain loop.

    python benchmarks/trials.py [--device cuda] [--repeats 100] [--tokens 64]

BERT-base shape, random weights, one text. `branches` is what the trial does in all layers; `loop`
changes one layer and runs the whole model, once for each layer and repeat. It is timed on a share
of its runs and scaled up. Both draw the same permutations, so the script also compares distances.
"""

import argparse

import torch
from branches import ask
from timing import timed

from attlas.models.asking.question import Question
from attlas.models.tap.edits import Edit
from attlas.trials import OpenSite, Scope
from attlas.trials.rewriting.rewritings import shuffle_columns
from attlas.trials.rewriting.rewritten_answers import RewritingPlan, run_plan
from attlas.trials.support.outputs import distributions, total_variation

SHARE = 10  # repeats that the loop is timed on


def permute_once(question: Question, opened: OpenSite, plan: RewritingPlan, number: int) -> Edit:
    """The edit of one repeat at one site."""

    def change(weights: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        draws = plan.draws(question, opened.site, [number])
        return plan.rewriting(weights[None], opened.entries(visible), draws)[0]

    return Edit("one", change).at(layer=opened.site.layer)


def loop(question: Question, opened: OpenSite, plan: RewritingPlan, numbers: range) -> torch.Tensor:
    """How far the answer moves in each repeat, with one pass of the whole model each."""
    own = distributions(question)
    moved = []
    for number in numbers:
        with question.subject.tap(permute_once(question, opened, plan, number), sites=()):
            moved.append(total_variation(distributions(question), own))
    return torch.cat(moved).cpu()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=64)
    given = parser.parse_args()
    question = ask(given.device, given.tokens)
    plan = RewritingPlan("permutation of columns", shuffle_columns, given.repeats, 0)
    scope = Scope("layer")
    opened = scope.open_sites(question)
    middle = len(opened) // 2
    numbers = range(min(SHARE, given.repeats))
    run_plan(question, scope, opened[-1:], plan)
    ours, found = timed(lambda: run_plan(question, scope, opened, plan), given.device)
    loop(question, opened[middle], plan, numbers[:1])
    part, expected = timed(lambda: loop(question, opened[middle], plan, numbers), given.device)
    plain = part * len(opened) * given.repeats / len(numbers)
    size = f"{len(opened)} layers x {given.repeats} permutations"
    print(f"{size}, {given.tokens} tokens, {given.device}")
    print(f"branches  {ours:8.2f} s")
    print(f"loop      {plain:8.2f} s   {plain / ours:6.2f} times branches")
    difference = (torch.from_numpy(found[middle])[: len(numbers), 0, 0] - expected).abs().max()
    print(f"largest difference of distances: {difference:.1e}")


if __name__ == "__main__":
    main()
