"""The verb `attribution_tree`: how a prediction came together, layer by layer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from attlas.errors import ModelError, UnknownNameError, UnsupportedModelError, UsageError
from attlas.explaining.explanations import is_one_text
from attlas.explaining.method_call import MethodCall, origin, target_record
from attlas.heads.attributing import attribute_sites, check_one_stack
from attlas.heads.growing import grow, grow_as_released, kept_share, strongest_row
from attlas.methods import METHODS
from attlas.methods.support.token_rows import check_share
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout
from attlas.models.asking.resolve import check_position
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.subject import Subject, check_subject
from attlas.results import Origin
from attlas.results.tree import Edge, Tree
from attlas.shapes import LayerMaps

VERB = "attribution_tree"
VARIANTS = ("published", "released")
READING = (
    "Each edge: in this layer the upper token reads the lower one, and that much of the target's "
    "probability is owed to it. Edges of different layers do not add up to anything."
)


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
    position: int | None = None,
    chat: bool = False,
    truncate: bool = False,
) -> Tree:
    """Grow the attribution tree of one text: the edges of attention that brought a prediction.

    An edge is kept if it has more than `tau` of the largest attribution of its layer and more than
    `lambda_` of probability. `root` is the token to start from, by its place: if not given, the one
    that the prediction is read from. `variant="released"` grows the tree as the authors' code does,
    from the token that reads most, and knows no `lambda_`. `steps` are those of the attribution's
    integral: as many as it takes, if not given.
    """
    check_subject(subject, VERB)
    if not is_one_text(text):
        raise UsageError(f"{VERB} takes one text, not a list of {len(text)}")
    _check_options(tau, lambda_, variant)
    wanted = Target.from_dict(target) if isinstance(target, Mapping) else target
    request = Request(wanted, contrast, position, None, chat, truncate)
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
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    check_share("tau", float(tau))
    if not 0 <= lambda_ <= 1:
        raise UsageError(f"lambda_ is a probability, between 0 and 1, not {lambda_}")
    if lambda_ and variant == "released":
        raise UsageError("the released variant knows no lambda_: every edge above tau is kept")


def _attribution(question: Question, steps: int | None) -> tuple[LayerMaps, float]:
    """The attribution of each layer, summed over heads, and its largest completeness error."""
    found = list(attribute_sites(question, question.subject.sites, steps))
    maps = [each.weights[0].sum(dim=0) for each in found]
    count = len(question.inputs.tokens[0])
    if any(each.shape != (count, count) for each in maps):
        raise UnsupportedModelError(
            f"the attention of {question.subject.name} is not from each token to each token"
        )
    table = torch.stack(maps).double().cpu().numpy()
    if not torch.isfinite(torch.from_numpy(table)).all():
        raise ModelError(f"the attribution of {question.subject.name} is not finite")
    return table, max(float(each.completeness_error[0]) for each in found)


def _root(question: Question, attribution: LayerMaps, variant: str, root: int | None) -> int:
    if root is not None:
        return check_position(root, question.inputs.tokens[0])
    if variant == "released" and not question.subject.predicts_next:
        return strongest_row(attribution)
    return int(find_readout(question)[0].argmax())


def _origin(subject: Subject, request: Request, text: Any, options: Mapping[str, Any]) -> Origin:
    method = METHODS["attattr"]
    given = text if isinstance(text, (str, tuple, list)) else type(text).__name__
    made = origin(MethodCall(method, request, {}), subject, {"text": given}, VERB)
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
        target_record(question, 0, METHODS["attattr"]),
        made,
        question.predictions[0],
        (
            *question.inputs.notes[0],
            f"completeness error of the attribution, largest of a layer: {error:.2g}",
        ),
    )
