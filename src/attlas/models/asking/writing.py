"""Written texts: what a model writes, and a question about every token of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from attlas.errors import UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Asked, Question
from attlas.models.encoding.continuations import (
    as_inputs,
    check_length,
    check_vocabulary,
    first_tokens,
    write,
)
from attlas.models.encoding.encode import Encoded, encode_ids
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.target import QUANTITIES, Target, best_choices
from attlas.models.encoding.token_ids import following_ids, show_ids, token_ids
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.model_facts import MASK
from attlas.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Written:
    """One question with a target for every written token, in the order of writing.

    `tokens` are the tokens of the input and the last written one. `outputs` are the positions of
    the targets among them.
    """

    question: Question
    tokens: Tokens
    outputs: tuple[int, ...]

    def alone(self, row: int) -> Question:
        """The question about one token, with the input cut behind the place where it is read."""
        asked = self.question.rows([row])
        stop = self.outputs[row]
        inputs = _until(asked.inputs, stop)
        target = asked.targets[0]
        (_, token), *_ = target.picks
        last = replace(asked.asked[0], target=replace(target, picks=((-1, token),)))
        return replace(asked, inputs=inputs, asked=(last,))


def ask_written(
    subject: OpenModel, found: Encoded, text: Any, output: str | None, most: int
) -> Written:
    """Ask about every token of an output; by default the model writes it."""
    subject.stream_axes  # noqa: B018  computed now, before a tap is open
    given = as_inputs(subject, found, text)
    if subject.has_decoder:
        start, ids, note = _behind_source(subject, given, output, most)
    else:
        start, (ids, note) = [], _behind_prompt(subject, found, given, output, most)
    if not ids:
        raise UsageError("nothing was written, so there is nothing to explain")
    written = encode_ids(subject.tokenizer, ids, "output").tokens
    before = given.tokens[0]
    if start:
        before = before.followed_by(encode_ids(subject.tokenizer, start, "prefix").tokens)
    whole = before.followed_by(written)
    fed = len(start) if subject.has_decoder else len(found.tokens)
    notes = (*found.notes, note, *(_why_short(subject, fed, len(ids), most) if not output else ()))
    inputs = _fed(subject, given, [*start, *ids[:-1]], whole, notes)
    outputs = tuple(range(len(before), len(whole)))
    return Written(_question(subject, inputs, ids), whole, outputs)


def _why_short(subject: OpenModel, fed: int, count: int, most: int) -> tuple[str, ...]:
    """A note if fewer tokens were written than might have been: no room is left, or an end."""
    if count >= most:
        return ()
    is_full = fed + count >= subject.max_tokens
    why = f"the model takes {subject.max_tokens} in all" if is_full else "the model ended its text"
    return (f"stopped after {count} of {most} tokens: {why}",)


def _behind_prompt(
    subject: OpenModel, found: Encoded, given: Inputs, output: str | None, most: int
) -> tuple[list[int], str]:
    if output is not None:
        return following_ids(subject.tokenizer, found.tokens, output, found.written), _GIVEN
    return write(subject, given, most)[1], _GREEDY


def _behind_source(
    subject: OpenModel, given: Inputs, output: str | None, most: int
) -> tuple[list[int], list[int], str]:
    if output is not None:
        ids = token_ids(subject.tokenizer, output, written=True)
        return first_tokens(subject), ids, _GIVEN
    return (*write(subject, given, most), _GREEDY)


_GIVEN = "explains an output that the user gave"
_GREEDY = "explains the model's own greedy output"


def _fed(
    subject: OpenModel, given: Inputs, ids: Sequence[int], whole: Tokens, notes: tuple[str, ...]
) -> Inputs:
    """The inputs, followed by all written tokens but the last."""
    tokens = whole.select(range(len(whole) - 1))
    more = torch.tensor([list(ids)], dtype=torch.long, device=subject.device)
    inputs = replace(given, tokens=(tokens,), notes=(notes,))
    check_vocabulary(subject, ids)
    if subject.has_decoder:
        check_length(subject, "start and output", len(ids))
        source = given.source
        return replace(
            inputs,
            arguments={**given.arguments, "decoder_input_ids": more},
            prefix=Stream("decoder_input_ids", source.stop, len(tokens)),
        )
    check_length(subject, "prompt and output", len(tokens) - (given.prefix or given.source).start)
    longer = {
        name: torch.cat([given.arguments[name], _continued(name, given, more)], dim=1)
        for name in given.companions(given.prefix or given.source)
    }
    grown = replace(given.prefix or given.source, stop=len(tokens))
    return replace(
        inputs,
        arguments={**given.arguments, **longer},
        source=given.source if given.prefix else grown,
        prefix=given.prefix and grown,
    )


def _until(inputs: Inputs, stop: int) -> Inputs:
    """The inputs, cut at a position in the stream that is written."""
    stream = inputs.prefix or inputs.source
    length = stop - stream.start
    names = inputs.companions(stream)
    shorter = replace(stream, stop=stop)
    return replace(
        inputs,
        arguments={
            name: value[:, :length] if name in names else value
            for name, value in inputs.arguments.items()
        },
        tokens=(inputs.tokens[0].select(range(stop)),),
        source=inputs.source if inputs.prefix else shorter,
        prefix=inputs.prefix and shorter,
    )


def _continued(name: str, given: Inputs, more: torch.Tensor) -> torch.Tensor:
    """What an argument has for more tokens: their ids, or the last mark or segment again."""
    if name == (given.prefix or given.source).argument:
        return more
    last = given.arguments[name][:, -1:]
    last = torch.zeros_like(last) if name in ("mm_token_type_ids", MASK) else last
    return last.expand(-1, more.shape[1], *last.shape[2:])


def _question(subject: OpenModel, inputs: Inputs, ids: Sequence[int]) -> Question:
    places = range(-len(ids), 0)
    with evaluation_mode(subject.model), torch.no_grad():
        logits = subject.run(inputs.arguments, -len(ids))[0]

    def name(index: int) -> str:
        return show_ids(subject.tokenizer, [index])

    targets = tuple(
        Target(name(token), ((place, token),)) for place, token in zip(places, ids, strict=True)
    )
    return Question(
        subject,
        inputs,
        tuple(
            Asked(
                target=target,
                prediction=best_choices(logits[place], "softmax", name),
                scores={of: float(target.score(logits, of)) for of in QUANTITIES},
            )
            for place, target in zip(places, targets, strict=True)
        ),
        tuple(range(len(ids))),
        maps=False,
    )
