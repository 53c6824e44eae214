"""References against captum: integrated gradients, leave-one-out, LIME and Kernel SHAP.

The first two compute the same numbers, on BERT-base's shape. The others draw sets of tokens, on the
built-in model: their difference is the error of ours, against all sets of tokens, as a share of the
largest score, and captum's is in the note; both draw equally many.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from captum._utils.models.model import Model
from captum.attr import FeatureAblation, KernelShap, LayerIntegratedGradients, Lime
from comparing import Row, Setup, largest_difference
from shapes import bert, one_question, texts_of
from torch import Tensor

import attlas
from attlas.methods.support.coalitions import closeness, ridge_scores

STEPS, EVERYTHING = 50, 2**14
TEXTS = [
    "not a great film, but I could not look away",
    "the plot is thin and the jokes are old",
    "a warm, funny and quietly moving story",
    "I wanted to like it and never did",
]


class Text:
    """One text of a subject, in the form that captum takes."""

    def __init__(self, subject: Any, text: str) -> None:
        self.subject, self.text = subject, text
        question = one_question(subject, text)
        ((_, self.target),) = question.targets[0].picks
        self.ids = question.inputs.arguments["input_ids"]
        special = torch.tensor(question.inputs.tokens[0].special, device=self.ids.device)
        self.content = (~special).nonzero()[:, 0]
        self.nothing = subject.tokenizer.mask_token_id
        self.masked = self.ids.masked_fill(~special, self.nothing)

    def logits(self, ids: Tensor) -> Tensor:
        return self.subject.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits

    @torch.no_grad()
    def probability(self, ids: Tensor) -> Tensor:
        return self.logits(ids).softmax(-1)[:, self.target]

    def with_only(self, present: Tensor) -> Tensor:
        """The probability for each row of zeros and ones over the content."""
        ids = self.ids.repeat(len(present), 1)
        shown = ids[:, self.content].where(present.to(ids.device).bool(), self.nothing)
        return self.probability(ids.index_copy(1, self.content, shown)).cpu()

    def ours(self, method: str, **options: Any) -> Tensor:
        found = attlas.explain(self.subject, self.text, method, **options)
        return torch.as_tensor(found.scores)[self.content.cpu()]

    def integrated(self) -> Tensor:
        table = self.subject.model.get_input_embeddings()
        found = LayerIntegratedGradients(self.logits, table).attribute(
            self.ids, self.masked, target=self.target, n_steps=STEPS, method="riemann_middle"
        )
        return found.sum(-1)[0, self.content]

    def ablated(self, at_once: int) -> Tensor:
        found = FeatureAblation(self.probability).attribute(
            self.ids, baselines=self.nothing, perturbations_per_eval=at_once
        )
        return found[0, self.content]


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


def compare(setup: Setup) -> Iterator[Row]:
    subject = bert(setup.device, layers=setup.size(12, 2))
    tokens = setup.size(128, 16)
    text = Text(subject, *texts_of(subject, [tokens]))
    peers: dict[str, tuple[str, dict[str, Any], Callable[[], Tensor]]] = {
        "FeatureAblation": ("leave_one_out", {"removal": "mask"}, partial(text.ablated, 1)),
        f"FeatureAblation, {tokens} at once": (
            "leave_one_out",
            {"removal": "mask"},
            partial(text.ablated, tokens),
        ),
        f"LayerIntegratedGradients, {STEPS} steps": (
            "integrated_gradients",
            {"steps": STEPS},
            text.integrated,
        ),
    }
    for against, (name, options, theirs) in peers.items():
        work = partial(text.ours, name, **options)
        ours, peer = setup.in_turns(work, theirs, rounds=3)
        off = largest_difference([work()], [theirs()])
        yield Row(f"`{name}`, {tokens} tokens", f"captum's {against}", ours, peer, None, off)
    yield from _drawn(setup)


def _drawn(setup: Setup) -> Iterator[Row]:
    subject = attlas.load("sentiment", device=setup.device)
    texts = [Text(subject, text) for text in TEXTS[: setup.size(4, 1)]]
    for name, theirs in {"kernel_shap": _shap, "lime": _lime}.items():
        for samples in (128, 512):
            seeds = range(setup.size(5, 1))
            exact = [text.ours(name, samples=EVERYTHING) for text in texts]
            ways = [partial(_ours, name), theirs]
            timed = [
                setup.timed(lambda w=way: [[w(t, seed, samples) for seed in seeds] for t in texts])  # noqa: B023
                for way in ways
            ]
            (ours, found), (peer, captums) = timed
            yield Row(
                f"`{name}`, {samples} sets of tokens",
                f"captum's {'KernelShap' if name == 'kernel_shap' else 'Lime'}, as many",
                ours,
                peer,
                difference=_error(found, exact),
                unit="of the largest score, from all sets",
                note=f"captum's error: {_error(captums, exact):.1%}",
            )


def _error(found: list[list[Tensor]], exact: list[Tensor]) -> float:
    """The mean over texts and seeds of the root mean square, as a share of the largest score."""
    shares = [
        float((row - right).square().mean().sqrt() / right.abs().max())
        for rows, right in zip(found, exact, strict=True)
        for row in rows
    ]
    return float(np.mean(shares))


def _ours(name: str, text: Text, seed: int, samples: int) -> Tensor:
    return text.ours(name, seed=seed, samples=samples)


def _lime(text: Text, seed: int, samples: int) -> Tensor:
    width = 0.75 * len(text.content) ** 0.5

    def similarity(_: Any, __: Any, present: Tensor, **___: Any) -> Tensor:
        return closeness(present.bool(), width)

    return _seeded(Lime(text.with_only, Fit(1.0), similarity_func=similarity), text, seed, samples)


def _shap(text: Text, seed: int, samples: int) -> Tensor:
    method = KernelShap(text.with_only)
    method.interpretable_model = Fit(0.0)
    return _seeded(method, text, seed, samples)


def _seeded(method: Any, text: Text, seed: int, samples: int) -> Tensor:
    whole = torch.ones(1, len(text.content))
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum's own, about scikit-learn
        torch.manual_seed(seed)
        found: Tensor = method.attribute(whole, n_samples=samples, perturbations_per_eval=256)
    return found[0]
