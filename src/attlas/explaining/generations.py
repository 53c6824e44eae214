"""The verb `explain_generation`: explain every token that a model wrote by those before it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

import torch

from attlas.data.example import Example
from attlas.errors import ModelError, UsageError
from attlas.explaining.footprint import check_fits
from attlas.explaining.method_call import (
    MethodCall,
    first_that_runs,
    memory_message,
    origin,
    plain_text,
    target_record,
)
from attlas.methods import METHODS, Method, Scored
from attlas.models.asking.memory import in_fitting_batches, telling_shortages
from attlas.models.asking.scores import visible_tokens
from attlas.models.asking.writing import Written, ask_written
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import ManyTexts, OneText, encode_plain, texts_of
from attlas.models.subject import Subject, check_subject
from attlas.results import Generation
from attlas.results.support.sums import sink_notes
from attlas.verbs import verb

DEFAULT_LENGTH = 20


@overload
def explain_generation(
    subject: Subject,
    text: ManyTexts,
    method: str | None = ...,
    *,
    max_new_tokens: int = ...,
    output: str | Sequence[str] | None = ...,
    chat: bool = ...,
    truncate: bool = ...,
    **options: Any,
) -> list[Generation]: ...
@overload
def explain_generation(
    subject: Subject,
    text: OneText,
    method: str | None = ...,
    *,
    max_new_tokens: int = ...,
    output: str | None = ...,
    chat: bool = ...,
    truncate: bool = ...,
    **options: Any,
) -> Generation: ...
@verb("explaining")
@telling_shortages
def explain_generation(
    subject: Subject,
    text: Any,
    method: str | None = None,
    *,
    max_new_tokens: int = DEFAULT_LENGTH,
    output: str | Sequence[str] | None = None,
    chat: bool = False,
    truncate: bool = False,
    **options: Any,
) -> Generation | list[Generation]:
    """Explain every token that the model writes: a matrix of scores, output × input.

    A row explains one written token by the prompt (for an encoder–decoder, by the source) and by
    what was written before it. If the method allows it, the model runs once over the finished text.

    Args:
        subject: A model that writes text, from `attlas.load`.
        text: One prompt or source, which gives one Generation, or a list of them, which gives a
            list of Generations in the same order. As in `explain`, `["not", "bad"]` are two
            prompts, and `[["not", "bad"]]` is one of two words; a list of token ids or of
            messages is one.
        method: The name of a method; `attlas.list_methods()` lists them. By default, the best that
            runs on the model: `attn_lrp`, otherwise `gradient_attention`.
        max_new_tokens: How many tokens the model writes at most; it always takes the likeliest.
        output: Explain this continuation instead of letting the model write. With a list of
            prompts, it is the one of all of them, or a list with one for each.
        chat: Take the text as the message of a user, for the tokenizer's chat template.
        truncate: Cut a text that is too long for the model; otherwise it is an error.
        **options: The method's own options; its docstring describes them.

    Example:
        >>> import attlas
        >>> subject = attlas.load("dates")
        >>> generation = attlas.explain_generation(subject, "March 3rd, 1987", max_new_tokens=4)
        >>> "".join(generation.tokens[place] for place in generation.outputs)
        '1987'
        >>> generation.scores.shape == (4, len(generation.tokens))
        True
    """
    check_subject(subject, "explain_generation")
    if not subject.predicts_next:
        task = subject.task.name if subject.task else "no head"
        raise UsageError(
            f"explain_generation needs a model that writes text; {subject.name} is for {task}"
        )
    if max_new_tokens < 1:
        raise UsageError(f"max_new_tokens must be at least 1, not {max_new_tokens}")
    if method is not None:
        METHODS[method].check_options(options)
    request = Request(chat=chat, truncate=truncate)
    texts, alone = texts_of(text)
    given = [each.text if isinstance(each, Example) else each for each in texts]
    outputs = _outputs(output, len(texts), not alone)
    with torch.inference_mode(False):
        written = [
            ask_written(subject, encode_plain(subject, one, request), one, its, max_new_tokens)
            for one, its in zip(given, outputs, strict=True)
        ]

        def run(chosen: Method, notes: tuple[str, ...]) -> list[Generation]:
            call = MethodCall(chosen, request, options, notes=notes)
            return [
                _record(call, each, list(_score(each, call)), _asked(one, max_new_tokens, its))
                for one, its, each in zip(given, outputs, written, strict=True)
            ]

        generations = first_that_runs(method, run, maps=None)
    return generations[0] if alone else generations


def _outputs(output: str | Sequence[str] | None, count: int, several: bool) -> list[str | None]:
    """The continuation that is given for each prompt; None where the model writes."""
    if output is None or isinstance(output, str):
        return [output] * count
    if not several:
        raise UsageError(f"one prompt takes one output, a string, not {output!r}")
    if len(output) != count:
        raise UsageError(f"{count} prompts but {len(output)} outputs")
    return list(output)


def _asked(text: Any, most: int, output: str | None) -> dict[str, Any]:
    return {"text": plain_text(text), "max_new_tokens": most, "output": output}


def _score(written: Written, call: MethodCall) -> Iterator[Scored]:
    """The scores of all rows over all tokens, in batches."""
    question, method = written.question, call.method
    width = len(question.inputs.tokens[0])

    def score(rows: Sequence[int]) -> Scored:
        asked = question.rows(rows) if method.many_targets else written.alone(rows[0])
        scored = method.score(asked, call.options)
        scores = scored.scores.float().where(visible_tokens(asked), 0).cpu()
        return replace(scored, scores=torch.nn.functional.pad(scores, (0, width - scores.shape[1])))

    count = len(question)
    check_fits(replace(question, maps=False), method)
    most = count if method.many_targets else 1
    for start in range(0, count, most):
        rows = range(start, min(start + most, count))
        yield from in_fitting_batches(rows, score, memory_message(method, question), "targets")


def _record(
    call: MethodCall, written: Written, scored: Sequence[Scored], asked: dict[str, Any]
) -> Generation:
    question = written.question
    scores = torch.cat([each.scores for each in scored])
    if not torch.isfinite(scores).all():
        name = question.subject.name
        raise ModelError(f"{call.method.name} gave scores that are not finite for {name}")
    rows = range(len(question))
    notes = dict.fromkeys(note for each in scored for note in each.notes)
    generation = Generation(
        written.tokens,
        torch.nn.functional.pad(scores, (0, 1)).numpy(),  # nothing depends on the last token
        written.outputs,
        tuple(target_record(question.answered[row], call.method) for row in rows),
        origin(call, question.subject, asked, "explain_generation"),
        (*question.notes(0), *notes, *call.notes),
        question.predictions,
        question.pictures(0),
        row_notes=tuple(note for each in scored for note in each.row_notes),
        row_warnings=tuple(warning for each in scored for warning in each.row_warnings),
        row_details=tuple(details for each in scored for details in each.row_details),
    )
    warned = [generation.warning] if generation.warning else []
    sinks = sink_notes(generation.tokens, generation.sinks)
    return replace(generation, notes=(*warned, *generation.notes, *sinks))
