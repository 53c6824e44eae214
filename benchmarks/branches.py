"""What branches save: permuted attention in every layer, compared with loops over the whole model.

    python benchmarks/branches.py [--device cuda] [--variants 100] [--tokens 64]

BERT-base shape, random weights, one text. `branches` is one call; `loop` runs the model once for
each layer and variant; `batched loop` runs it once for each layer, all variants in one batch. The
loops are timed on a share of their runs and scaled up. The scores of both are compared.
"""

import argparse

import torch
from timing import timed
from transformers import BertConfig, BertForSequenceClassification
from transformers.utils import logging

import attlas
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores
from attlas.models.branching import variants
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.tap.edits import Edit


def ask(device: str, length: int) -> Question:
    """A question about random ids of this many tokens."""
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = BertConfig(initializer_range=0.05, attn_implementation="sdpa")
    model = BertForSequenceClassification(config).eval().to(device)
    tokenizer = attlas.load().tokenizer
    subject = attlas.Subject(model, tokenizer)
    (question,) = subject.ask([torch.randint(10, 2000, (length,)).tolist()])
    return question


def as_edit(branch: Branch, number: int) -> Edit:
    def change(weights: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        return branch.variants.change(branch.site, weights, visible, (number,))[0]

    return Edit("one", change).at(layer=branch.site.layer)


def as_batch(branch: Branch) -> Edit:
    def change(weights: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        numbers = range(branch.variants.count)
        return branch.variants.change(branch.site, weights[:1], visible[:1], numbers)[:, 0]

    return Edit("all", change).at(layer=branch.site.layer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--variants", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=64)
    given = parser.parse_args()
    question = ask(given.device, given.tokens)
    made = [
        Branch(s, variants.permuted(given.variants, 1000 * s.layer)) for s in question.subject.sites
    ]
    layers = len(made)

    def branched() -> torch.Tensor:
        found = run_branches(question, made, "logit")
        return torch.stack([each.scores[:, 0] for each in found])

    def loop(layer: int, numbers: range) -> torch.Tensor:
        return torch.cat(
            [target_scores(question, "logit", as_edit(made[layer], number)) for number in numbers]
        )

    def batched(layer: int) -> torch.Tensor:
        return target_scores(question.rows([0] * given.variants), "logit", as_batch(made[layer]))

    branched()
    ours, scores = timed(branched, given.device)
    share = range(min(given.variants, 10))
    loop(0, share)
    single, expected = timed(lambda: loop(layers // 2, share), given.device)
    single *= layers * given.variants / len(share)
    batched(0)
    halves = [timed(lambda layer=layer: batched(layer), given.device) for layer in (0, layers - 1)]
    grouped = sum(each for each, _ in halves) / len(halves) * layers
    difference = (scores[layers // 2, : len(share)] - expected).abs().max()
    other = (scores[-1] - halves[1][1]).abs().max()
    print(f"{layers} layers x {given.variants} variants, {given.tokens} tokens, {given.device}")
    print(f"branches      {ours:8.2f} s")
    print(f"loop          {single:8.2f} s   {single / ours:6.2f} times branches")
    print(f"batched loop  {grouped:8.2f} s   {grouped / ours:6.2f} times branches")
    print(f"largest difference of scores: {difference:.1e} (loop), {other:.1e} (batched loop)")


if __name__ == "__main__":
    main()
