"""The verb `attribution_tree`: the few edges of attention that brought a prediction.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.

An edge says that in its layer the parent reads the child. A token enters a tree once, and then
reads others in the layers below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from attlas.catalogue import VARIANTS, check_word
from attlas.errors import ModelError, UnsupportedModelError, UsageError
from attlas.explaining.method_call import MethodCall, origin, plain_text, target_record
from attlas.heads.site_attribution import attribute_sites, check_one_stack
from attlas.methods import METHODS
from attlas.methods.support.token_rows import check_share
from attlas.models.asking.memory import telling_shortages
from attlas.models.asking.positions import check_position
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.encoding.text_inputs import is_one_text
from attlas.models.subject import Subject, check_subject
from attlas.results import Origin
from attlas.results.tree import Edge, Tree
from attlas.shapes import LayerMaps
from attlas.verbs import verb

VERB = "attribution_tree"
READING = (
    "Each edge: in this layer the upper token reads the lower one, which adds that much to the "
    "target's probability. Sums over edges of different layers mean nothing."
)


@verb("growing the tree")
@telling_shortages
def attribution_tree(
    subject: Subject,
    text: Any,
    target: Any = None,
    *,
    tau: int | float = 0.4,
    lambda_: int | float = 0.0,
    variant: str = "published",
    root: int | None = None,
    steps: int | None = None,
    contrast: Any = None,
    position: Any = None,
    chat: bool = False,
    truncate: bool = False,
) -> Tree:
    """Grow the attribution tree of one text: the edges of attention that brought a prediction.

    An edge is kept if it has more than `tau` of the largest attribution of its layer and adds more
    than `lambda_` to the probability. `root` is the position of the token to start from; by default
    the one that the prediction is read from. `variant="released"` grows the tree as the authors'
    code does, from the token that reads most, and takes no `lambda_`. `steps` is the number of
    steps of the attribution's integral; by default as many as it needs. `target`, `contrast`,
    `position`, `chat` and `truncate` are those of `explain`.
    """
    check_subject(subject, VERB)
    if not is_one_text(text):
        raise UsageError(f"{VERB} takes one text, not a list of {len(text)}")
    _check_options(tau, lambda_, variant)
    what = Target.from_dict(target) if isinstance(target, Mapping) else target
    request = Request(what, contrast, position, None, chat, truncate)
    options = {"tau": tau, "lambda_": lambda_, "variant": variant, "root": root, "steps": steps}
    with torch.inference_mode(False):
        check_one_stack(subject)
        (question,) = subject.ask([text], request)
        attribution, error = _attribution(question, steps)
        start = _root(question, attribution, variant, root)
    if variant == "released":
        edges = grow_as_released(attribution, start, float(tau))
    else:
        edges = grow(attribution, start, float(tau), float(lambda_))
    made = _origin(subject, request, text, options)
    return _record(question, attribution, start, edges, made, error)


def _check_options(tau: int | float, lambda_: int | float, variant: str) -> None:
    check_word("variant", variant, VARIANTS)
    check_share("tau", float(tau))
    if not 0 <= lambda_ <= 1:
        raise UsageError(f"lambda_ must be a probability, between 0 and 1, not {lambda_}")
    if lambda_ and variant == "released":
        raise UsageError("the released variant takes no lambda_: it keeps every edge above tau")


def _attribution(question: Question, steps: int | None) -> tuple[LayerMaps, float]:
    """The attribution of each layer, summed over heads, and its largest completeness error."""
    sites = list(attribute_sites(question, question.subject.sites, steps))
    maps = [each.weights[0].sum(dim=0) for each in sites]
    count = len(question.inputs.tokens[0])
    if any(each.shape != (count, count) for each in maps):
        raise UnsupportedModelError(
            f"the attention of {question.subject.name} is not from each token to each token"
        )
    table = torch.stack(maps).double().cpu().numpy()
    if not torch.isfinite(torch.from_numpy(table)).all():
        raise ModelError(f"the attribution of {question.subject.name} is not finite")
    return table, max(float(each.completeness_error[0]) for each in sites)


def _root(question: Question, attribution: LayerMaps, variant: str, root: int | None) -> int:
    if root is not None:
        return check_position(root, question.inputs.tokens[0])
    if variant == "released" and not question.subject.predicts_next:
        return strongest_row(attribution)
    return int(find_readout(question)[0].argmax())


def _origin(subject: Subject, request: Request, text: Any, options: Mapping[str, Any]) -> Origin:
    method = METHODS["attattr"]
    made = origin(MethodCall(method, request, {}), subject, {"text": plain_text(text)}, VERB)
    return replace(made, method=VERB, signed=False, reading=READING, options=options)


def _record(
    question: Question,
    attribution: LayerMaps,
    root: int,
    edges: list[Edge],
    made: Origin,
    error: float,
) -> Tree:
    return Tree(
        question.inputs.tokens[0],
        root,
        tuple(edges),
        len(attribution),
        kept_share(attribution, edges),
        target_record(question.answered[0], METHODS["attattr"]),
        made,
        question.predictions[0],
        (
            *question.notes(0),
            f"largest completeness error of the attribution in a layer: {error:.2g}",
        ),
    )


def grow(attribution: LayerMaps, root: int, tau: float, cost: float) -> list[Edge]:
    """The tree from this root, grown layer by layer from the top.

    An edge needs more than `tau` of the largest attribution in its layer, and more than `cost`.
    A new token is attached to the token of the tree that gives it the largest attribution. Within
    a layer no other choice adds more to the objective; over several layers this is greedy.
    """
    edges: list[Edge] = []
    inside = [root]
    for layer in reversed(range(len(attribution))):
        table = attribution[layer]
        least = max(tau * float(table.max()), cost, 0.0)
        candidates = [
            _best_edge(table, layer, inside, child)
            for child in range(len(table))
            if child not in inside
        ]
        added = [edge for edge in candidates if edge.attribution > least]
        edges += added
        inside += [edge.child for edge in added]
    return edges


def _best_edge(table: np.ndarray, layer: int, parents: Sequence[int], child: int) -> Edge:
    parent = max(parents, key=lambda each: float(table[each, child]))
    return Edge(layer, parent, child, float(table[parent, child]))


def grow_as_released(attribution: LayerMaps, root: int, tau: float) -> list[Edge]:
    """The tree as the authors' code grows it.

    Differences: the last layer is left out, and in the layer below it only the root reads; the
    first token reads nothing, and its row does not count for the largest value of a layer; tokens
    are visited in text order, the first one to read another keeps it, and a token that was read in
    a layer may read others in the same layer.
    """
    edges: list[Edge] = []
    inside = {root}
    below = len(attribution) - 2
    for layer in range(below, -1, -1):
        table = attribution[layer]
        largest = abs(float(table[1:].max(initial=-np.inf)))
        for parent in [root] if layer == below else range(1, len(table)):
            for child in range(len(table)):
                value = float(table[parent, child])
                if parent in inside and child not in inside and value > tau * largest:
                    edges.append(Edge(layer, parent, child, value))
                    inside.add(child)
    return edges


def strongest_row(attribution: LayerMaps) -> int:
    """The token that reads most: the largest sum of positive attribution in its row.

    Attribution to itself does not count. The first token is left out if there are others, as in
    the authors' code.
    """
    summed = attribution.sum(axis=0).clip(min=0)
    np.fill_diagonal(summed, 0)
    rows = summed.sum(axis=1)
    return int(rows[1:].argmax()) + 1 if len(rows) > 1 else 0


def worth(edges: Sequence[Edge], cost: float) -> float:
    """The objective: the attribution of all edges, minus a cost for each."""
    return sum((edge.attribution - cost for edge in edges), 0.0)


def kept_share(attribution: LayerMaps, edges: Sequence[Edge]) -> float:
    """The share of these edges in all positive attribution between different tokens."""
    others = ~np.eye(attribution.shape[-1], dtype=bool)
    whole = float(attribution.clip(min=0)[:, others].sum())
    return worth(edges, 0.0) / whole if whole > 0 else 0.0
