"""Reducing: texts without a share of their tokens, which are masked."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from attlas.models.asking.question import Question
from attlas.removing.operators import mask, mask_id
from attlas.removing.removal import removable
from attlas.shapes import Hidden, TokenMarks, TokenScores, TokenVector
from attlas.tokens import Tokens


def none_hidden(question: Question) -> Hidden:
    """Hide no token of any text."""
    return torch.zeros(len(question), len(question.inputs.tokens[0]), dtype=torch.bool)


def all_hidden(question: Question) -> Hidden:
    """Hide every content token."""
    hidden = none_hidden(question)
    for row in range(len(question)):
        hidden[row, removable(question, row)] = True
    return hidden


def reduced(question: Question, hidden: Hidden) -> Question:
    """The question with the hidden tokens masked; its tokens say so too.

    A masked token counts as a special one: it is not content any more.
    """
    if not hidden.any():
        return question
    subject = question.subject
    inputs = mask(question, question.inputs, hidden)
    shown = str(subject.tokenizer.convert_ids_to_tokens(mask_id(subject)))
    tokens = tuple(
        _masked(each, marks, shown)
        for each, marks in zip(inputs.tokens, hidden.tolist(), strict=True)
    )
    return question.about(replace(inputs, tokens=tokens))


def _masked(tokens: Tokens, marks: Sequence[bool], shown: str) -> Tokens:
    return replace(
        tokens,
        texts=tuple(
            shown if gone else text for gone, text in zip(marks, tokens.texts, strict=True)
        ),
        offsets=tuple(
            None if gone else span for gone, span in zip(marks, tokens.offsets, strict=True)
        ),
        special=tuple(gone or known for gone, known in zip(marks, tokens.special, strict=True)),
    )


def hide_more(question: Question, hidden: Hidden, scores: TokenScores, share: float) -> Hidden:
    """Hide the tokens of the largest scores, by size, until this share of the content is hidden.

    The question is of the whole texts; what is hidden already stays hidden.
    """
    more = hidden.clone()
    for row, values in enumerate(scores.detach().double().cpu().numpy()):
        content = removable(question, row)
        marks = chosen(np.abs(values[content]), hidden[row, content].numpy(), share)
        more[row, content] = torch.from_numpy(marks)
    return more


def chosen(sizes: TokenVector, gone: TokenMarks, share: float) -> TokenMarks:
    """The tokens that are gone, and the largest others up to this share of all: at least one.

    Halves are rounded up. Of equal sizes, the first is taken.
    """
    count = max(1, int(np.floor(share * len(sizes) + 0.5 + 1e-9))) if len(sizes) else 0
    order = np.argsort(np.where(gone, -np.inf, -sizes), kind="stable")
    marks = np.zeros(len(sizes), dtype=bool)
    marks[order[: max(count, int(gone.sum()))]] = True
    return marks
