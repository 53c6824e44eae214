"""The verb `check`: can Attlas open this model exactly, and which methods run on it?"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attlas.errors import AttlasError, UnsupportedModelError
from attlas.methods import METHODS
from attlas.models.asking.as_found import distance, first_tensor, rounding
from attlas.models.branching.blocks import study_blocks
from attlas.models.encoding.encode_input import sample_input
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.subject import Subject, check_subject
from attlas.models.tap import edits
from attlas.results.check_result import CheckResult
from attlas.verbs import verb

SAMPLE = "The film was not a great one, but I could not look away."
FEW_STEPS = {"samples": 8, "steps": 1, "probes": 1}  # enough to see whether a method runs


@verb("checking")
def check(subject: Subject) -> CheckResult:
    """Open the model on a short input and compare, to the bit, with what it computes by itself.

    The result also says which methods run on this model, and for each other one why not.

    Args:
        subject: The model, from `attlas.load`.

    Example:
        >>> import attlas
        >>> result = attlas.check(attlas.load("sentiment"))
        >>> result.passed
        True
        >>> result.methods["attention_rollout"]  # empty: it runs
        ''
    """
    check_subject(subject, "check")
    inputs = subject.encode(_sample(subject), Request(prefix="", truncate=True))
    arguments = inputs.of_model
    configurations = internals.configurations(subject.model)
    backend = internals.implementations(configurations)[0]
    before = _run(subject, arguments)
    with internals.implementation(configurations, "eager"):
        eager = _run(subject, arguments)
    with subject.tap():
        opened = _run(subject, arguments)
    with subject.tap(edits.apply(torch.clone)):
        edited = _run(subject, arguments)
    most = rounding(before)
    to_the_bit = distance(eager, before) <= most  # else eager is another function than the model

    def same(output: Tensor) -> bool:
        return torch.equal(output, eager) if to_the_bit else distance(output, before) <= most

    return CheckResult(
        model=subject.name,
        kind=type(subject.model).__name__,
        task=subject.task.name if subject.task else "",
        sites=subject.sites,
        exact=same(opened),
        restored=torch.equal(_run(subject, arguments), before),
        editable=same(edited),
        differentiable=_has_gradients(subject, arguments),
        second_road=anatomy(subject.model).has_second_road,
        branches=_why_no_branches(subject, inputs),
        backend=backend or "eager",
        to_the_bit=to_the_bit,
        distance=distance(opened, before),
        faithful=distance(opened, before) <= most,
        methods={method.name: _why_not(subject, method.name) for method in METHODS},
    )


def _sample(subject: Subject) -> Any:
    if subject.reads_images or subject.reads_pairs or subject.sound_argument:
        return sample_input(subject)
    text = f"{SAMPLE} {subject.tokenizer.mask_token or ''}".strip()
    return (SAMPLE, SAMPLE) if isinstance(sample_input(subject), tuple) else text


def _run(subject: Subject, arguments: Mapping[str, Tensor]) -> Tensor:
    with evaluation_mode(subject.model), torch.no_grad():
        return first_tensor(subject.model(**arguments))


def _has_gradients(subject: Subject, arguments: Mapping[str, Tensor]) -> bool:
    try:
        subject.check_gradients()
    except UnsupportedModelError:
        return False
    with torch.enable_grad(), subject.tap(gradients=True) as seen:
        total = first_tensor(subject.model(**arguments)).square().sum()
        computed = torch.autograd.grad(total, seen.weights, allow_unused=True)
    gradients = [gradient for gradient in computed if gradient is not None]
    finite = all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    return finite and any(bool(gradient.any()) for gradient in gradients)


def _why_no_branches(subject: Subject, inputs: Inputs) -> str:
    try:
        study_blocks(subject, inputs)
    except Exception as problem:
        return _told(problem)
    return ""


def _told(problem: Exception) -> str:
    """What went wrong, in one line; an error that is not one of ours with its type."""
    if isinstance(problem, AttlasError):
        return str(problem)
    lines = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {lines[0] if lines else 'no message'}"


def _why_not(subject: Subject, name: str) -> str:
    """Why a method cannot run on this model; an empty string if it can."""
    if subject.task is None:
        return "no head, so there is no prediction to explain"
    request = Request(prefix="" if subject.has_decoder else None, truncate=True)
    options = {each: value for each, value in FEW_STEPS.items() if each in METHODS[name].options}
    try:
        for question in subject.ask([_sample(subject)], request):
            METHODS[name].score(replace(question, maps=False), options)
    except Exception as problem:  # one method that breaks must not hide what the others do
        return _told(problem)
    return ""
