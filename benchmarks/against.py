"""How far Attlas is from independent code, on the same model and the same texts.

    python benchmarks/against.py [--model FOLDER] [--texts 4]

captum: integrated gradients, feature ablation (our leave_one_out), LIME and Kernel SHAP; networkx:
maximum flow. If both compute the same number, the script prints the largest difference and the
largest score. If both draw at random, it prints the error and the processor time of each: for
Kernel SHAP against exact Shapley values, for LIME against a regression over every set of tokens.
The model is a classifier of single texts; by default the built-in one.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import torch
from captum._utils.models.model import Model
from captum.attr import FeatureAblation, KernelShap, LayerIntegratedGradients, Lime
from scipy.stats import spearmanr
from torch import Tensor

import attlas
from attlas.methods.support.coalitions import closeness, ridge_scores
from attlas.models.asking.reading import find_readout
from attlas.models.facts import transformers_internals as internals

TEXTS = [
    "not a great film, but I could not look away",
    "the plot is thin and the jokes are old",
    "a warm, funny and quietly moving story",
    "I wanted to like it and never did",
    "every scene is too long by half",
    "what a waste of a fine cast",
]
SEEDS = 5


class Text:
    """One text of a subject, in the form that captum takes."""

    def __init__(self, subject: Any, text: str) -> None:
        self.subject = subject
        (self.question,) = subject.ask([text])
        ((_, self.target),) = self.question.targets[0].picks
        self.ids = self.question.inputs.arguments["input_ids"]
        special = torch.tensor(self.question.inputs.tokens[0].special)
        self.content = (~special).nonzero()[:, 0]
        tokenizer = subject.tokenizer
        nothing = tokenizer.pad_token_id if tokenizer.mask_token_id is None else None
        self.nothing = tokenizer.mask_token_id if nothing is None else nothing
        self.masked = self.ids.masked_fill(~special, self.nothing)
        # Players are numbered; all special tokens together are one more, which is never masked.
        self.features = torch.full_like(self.ids, len(self.content))
        self.features[0, self.content] = torch.arange(len(self.content))

    def logits(self, ids: Tensor) -> Tensor:
        return self.subject.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    @torch.no_grad()
    def probability(self, ids: Tensor) -> Tensor:
        return self.logits(ids).softmax(-1)[:, self.target]

    @torch.no_grad()
    def with_only(self, present: Tensor) -> Tensor:
        """The probability for each row of zeros and ones over the content."""
        ids = self.ids.repeat(len(present), 1)
        shown = ids[:, self.content].where(present.bool(), self.nothing)
        return self.probability(ids.index_copy(1, self.content, shown))

    def ours(self, method: str, **options: Any) -> np.ndarray:
        found = attlas.explain(self.subject, self.question.inputs.texts[0], method, **options)
        return found.scores[self.content.numpy()]


class Fit(Model):
    """The model that captum fits to its samples; captum's own models need scikit-learn."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def fit(self, train_data: Any, **_: Any) -> None:
        ((present, values, weights),) = list(train_data)
        if self.penalty:
            found = ridge_scores(present.bool(), weights, values[:, None], self.penalty)[0]
        else:
            root = weights.double().sqrt()[:, None]
            design = torch.cat([present.double(), torch.ones(len(present), 1).double()], dim=1)
            found = torch.linalg.lstsq(root * design, root * values.double()[:, None]).solution
            found = found[:-1, 0]
        self.found = found.float()

    def representation(self) -> Tensor:
        return self.found

    def __call__(self, x: Any) -> Any:
        raise NotImplementedError


def integrated_gradients(text: Text) -> tuple[np.ndarray, np.ndarray]:
    (table, *_) = internals.ways_in(text.subject.model)
    method = LayerIntegratedGradients(text.logits, table)
    theirs = method.attribute(
        text.ids, text.masked, target=text.target, n_steps=50, method="riemann_middle"
    )
    ours = text.ours("integrated_gradients", steps=50)
    return ours, theirs.sum(-1)[0, text.content].detach().numpy()


def leave_one_out(text: Text) -> tuple[np.ndarray, np.ndarray]:
    theirs = FeatureAblation(text.probability).attribute(
        text.ids, baselines=text.nothing, perturbations_per_eval=1
    )
    return text.ours("leave_one_out", removal="mask"), theirs[0, text.content].numpy()


def attention_flow(text: Text) -> tuple[np.ndarray, np.ndarray]:
    maps = text.subject.attention(text.question.inputs.texts[0]).weights
    layers = [0.5 * each.mean(0) + 0.5 * np.eye(each.shape[1]) for each in maps]
    graph = networkx.DiGraph()
    for number, layer in enumerate(layers):
        for (query, key), weight in np.ndenumerate(layer):
            graph.add_edge((number + 1, query), (number, key), capacity=float(weight))
    place = int(find_readout(text.question)[0].argmax())
    flows = [
        networkx.maximum_flow_value(graph, (len(layers), place), (0, key))
        for key in range(text.ids.shape[1])
    ]
    theirs = np.array(flows) / sum(flows)
    return text.ours("attention_flow"), theirs[text.content.numpy()]


def same(name: str, compare: Callable[[Text], tuple[np.ndarray, np.ndarray]], texts: Any) -> None:
    """One line: the largest difference over all texts, and the largest score."""
    pairs = [compare(text) for text in texts]
    apart = max(float(np.abs(ours - theirs).max()) for ours, theirs in pairs)
    largest = max(float(np.abs(theirs).max()) for _, theirs in pairs)
    print(f"{name:<42} largest difference {apart:.1e}, largest score {largest:.2g}")


def captum_lime(text: Text, seed: int, samples: int) -> np.ndarray:
    width = 0.75 * len(text.content) ** 0.5

    def similarity(_: Any, __: Any, present: Tensor, **___: Any) -> Tensor:
        return closeness(present.bool(), width)

    method = Lime(text.with_only, Fit(1.0), similarity_func=similarity)
    return seeded(method, text, seed, samples)


def captum_shap(text: Text, seed: int, samples: int) -> np.ndarray:
    method = KernelShap(text.with_only)
    method.interpretable_model = Fit(0.0)
    return seeded(method, text, seed, samples)


def seeded(method: Any, text: Text, seed: int, samples: int) -> np.ndarray:
    whole = torch.ones(1, len(text.content))
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum's own, about scikit-learn
        torch.manual_seed(seed)
        found = method.attribute(whole, n_samples=samples, perturbations_per_eval=256)
    return found[0].numpy()


def drawn(name: str, theirs: Callable[..., np.ndarray], texts: Any, samples: int) -> None:
    """Two lines: the error of each and its seconds, with the same number of samples."""
    everything = 2**14
    ways = {
        "ours": lambda text, seed: text.ours(name, seed=seed, samples=samples),
        "captum": lambda text, seed: theirs(text, seed, samples),
    }
    for way, score in ways.items():
        errors, ranks, start = [], [], time.process_time()
        found = [[score(text, seed) for seed in range(SEEDS)] for text in texts]
        seconds = (time.process_time() - start) / (SEEDS * len(texts))
        for text, rows in zip(texts, found, strict=True):
            exact = text.ours(name, samples=everything)
            errors += [np.sqrt(np.mean((row - exact) ** 2)) / np.abs(exact).max() for row in rows]
            ranks += [spearmanr(row, exact).statistic for row in rows]
        label = f"{name} ({way}, {samples} samples)"
        print(
            f"{label:<42} error {np.mean(errors):.1%} of the largest score, "
            f"rank correlation {np.mean(ranks):.3f}, {seconds:.2f} s per text"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--texts", type=int, default=4)
    given = parser.parse_args()
    subject = attlas.load(given.model)
    texts = [Text(subject, text) for text in TEXTS[: given.texts]]
    counts = [len(text.content) for text in texts]
    print(f"{subject.name}: {len(texts)} texts of {min(counts)} to {max(counts)} content tokens")
    same("integrated_gradients (captum)", integrated_gradients, texts)
    same("leave_one_out, removal=mask (captum)", leave_one_out, texts)
    same("attention_flow (networkx)", attention_flow, texts)
    few = [text for text in texts if 2 ** len(text.content) <= 2**14]
    for samples in (128, 512):
        drawn("kernel_shap", captum_shap, few, samples)
        drawn("lime", captum_lime, few, samples)


if __name__ == "__main__":
    main()
