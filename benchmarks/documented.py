"""Single figures in the docs that no other benchmark prints.

    ATTLAS_DATA=... python benchmarks/documented.py faithfulness --model FOLDER [--count 150]
    python benchmarks/documented.py precision [--count 6]
    python benchmarks/documented.py sums --model FOLDER
    python benchmarks/documented.py steps --model FOLDER
    python benchmarks/documented.py robustness [--count 8]

faithfulness (docs/faithfulness.md): on the first sentences of SST-2 dev, with a classifier of
them, the comprehensiveness of input × gradient combined over features in three ways; how far
the flow and the rollout of content tokens differ within a sentence; which token has most flow.
precision (docs/methods/lrp_relevance.md, effective_attention.md): the mean rank correlation of
scores in bfloat16 with those in float32, on hard reviews, with the built-in model. sums
(docs/methods/attn_lrp.md, decompx.md): the sum of the scores and the logit, with a language model.
steps (docs/methods/integrated_gradients.md): by how much scores miss the gain, by the number of
even steps and then with as many points as they need. robustness (docs/measures/sensitivity.md,
randomisation.md): both measures for several
methods on hard reviews, with the built-in model.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from faithfulness import judge
from scipy.stats import spearmanr
from torch import Tensor

import attlas
from attlas.measures.randomisation import figure, randomise
from attlas.measures.sensitivity import sensitivities
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.asking.question import Question
from attlas.models.states.embeddings import embedding_gradients, over_tokens
from attlas.removing.removal import removable

FILM = "The film was not a great one, but I could not look away from it"
FRANCE = "The capital of France is"
STEPS = (50, 100, 400, 1600, None)
ROBUST = (
    *("raw_attention", "attention_rollout", "gradient_attention", "gradient", "input_x_gradient"),
    *("attn_lrp", "leave_one_out", "random_scores"),
)
TOGETHER: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda product: product.sum(-1),
    "size of the sum": lambda product: product.sum(-1).abs(),
    "L2 norm": lambda product: product.norm(dim=-1),
}


def faithfulness(given: argparse.Namespace) -> None:
    subject = attlas.load(given.model, device=given.device, dtype="float32")
    texts = [each.text for each in attlas.texts("sst2", split="dev", count=given.count or 150)]
    questions = [replace(each, maps=False) for each in subject.ask(texts)]
    width = subject.model.config.hidden_size // subject.sites[0].heads
    short = sum(len(tokens) <= width for each in questions for tokens in each.inputs.tokens)
    print(f"{len(texts)} sentences, {short} of them no longer than a head is wide ({width})")
    for name, together in TOGETHER.items():
        found = np.concatenate([judge(each, by_gradient(each, together)) for each in questions])
        print(f"input x gradient, {name}: comprehensiveness {found[:, 0].mean():.3f}", flush=True)
    for name in ("attention_flow", "attention_rollout"):
        rows = [row for each in questions for row in content_scores(each, name)]
        spread = np.mean([scores.std() / scores.mean() for scores, _ in rows])
        first = sum(tokens[int(scores.argmax())] == "." for scores, tokens in rows)
        print(
            f"{name}: spread over content tokens {spread:.1%} of their mean, "
            f"full stop first in {first} of {len(rows)}",
            flush=True,
        )


def by_gradient(question: Question, together: Callable[[Tensor], Tensor]) -> Tensor:
    found, _ = embedding_gradients(question, "logit")
    parts = [(each.start, together(each.values * each.gradient)) for each in found]
    return over_tokens(question.inputs, parts)


def content_scores(question: Question, name: str) -> Iterator[tuple[np.ndarray, list[str]]]:
    scores = METHODS[name].score(question, {}).scores.double().cpu().numpy()
    for row in range(len(question)):
        content = removable(question, row)
        yield scores[row, content], [question.inputs.tokens[row][place] for place in content]


def precision(given: argparse.Namespace) -> None:
    texts = [each.text for each in attlas.texts("reviews_hard")][: given.count or 6]
    whole, half = (attlas.load("sentiment", dtype=dtype) for dtype in ("float32", "bfloat16"))
    for name in METHODS.names():
        pairs = zip(explained(whole, texts, name), explained(half, texts, name), strict=True)
        found = [spearmanr(*pair).statistic for pair in pairs]
        print(f"{name:<28} {np.mean(found):.3f}", flush=True)


def explained(subject: attlas.Subject, texts: Sequence[str], name: str) -> list[np.ndarray]:
    found = attlas.explain(subject, list(texts), name, "positive", maps=False)
    return [each.scores for each in found]


def sums(given: argparse.Namespace) -> None:
    subject = attlas.load(given.model, device=given.device, dtype="float32")
    for text, name, options in (
        (FILM, "attn_lrp", {"variant": "attn"}),
        (FILM, "attn_lrp", {"variant": "cp"}),
        (FRANCE, "decompx", {}),
    ):
        found = attlas.explain(subject, text, name, maps=False, **options)
        said = " ".join([name, *options.values()])
        logit = found.target.value
        print(f"{said:<16} sum {found.scores.sum():.5f}, logit {logit:.5f}", flush=True)


def steps(given: argparse.Namespace) -> None:
    subject = attlas.load(given.model, device=given.device, dtype="float32")
    for count in STEPS:
        found = attlas.explain(subject, FRANCE, "integrated_gradients", " Paris", steps=count)
        print(*found.notes, flush=True)


def robustness(given: argparse.Namespace) -> None:
    subject = attlas.load(device=given.device)
    texts = [each.text for each in attlas.texts("reviews_hard")][: given.count or 8]
    questions = list(subject.ask(texts))
    print(f"{'method':<20} sensitivity  randomisation  the head alone")
    for name in ROBUST:
        recipe = Recipe(METHODS[name], {})
        moved = np.nanmean(sensitivities(questions, recipe, seed=0))
        cuts = randomise(questions, recipe, seed=0).values()
        below, head = (
            np.mean([of(each) for each in cuts]) for of in (figure, lambda each: each[0].sizes)
        )
        print(f"{name:<20} {moved:11.3f} {below:14.3f} {head:15.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    figures = {each.__name__: each for each in (faithfulness, precision, sums, steps, robustness)}
    parser.add_argument("figures", choices=figures)
    parser.add_argument("--model", help="a folder; not for precision and robustness")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, help="how many texts")
    given = parser.parse_args()
    if given.figures not in ("precision", "robustness") and given.model is None:
        parser.error(f"{given.figures} needs a --model")
    torch.manual_seed(0)
    figures[given.figures](given)


if __name__ == "__main__":
    main()
