"""Sentences: the tokens of each put together, by a small rule about where one ends."""

import re
from dataclasses import replace

from attlas.results.support.words import Unit, join_tokens
from attlas.tokens import Span, Tokens

_CLOSING = "[\"'”’»)\\]]*"
# The ends of lines belong to the sentence before them; other spaces to none, since the token of the
# word that follows may hold them.
_SENTENCE = re.compile(
    rf"\S[^\n]*?(?:[.!?…]+{_CLOSING}(?=\s|\Z)|[。！？]+{_CLOSING}|(?=\n)|\Z)(?:[^\S\n]*\n)*"
)


def sentence_spans(text: str) -> tuple[Span, ...]:
    """The sentences of a text: up to `.`, `!` or `?` before a space, or to the end of a line.

    It knows no abbreviations: "Mr. Smith" is two.
    """
    return tuple(match.span() for match in _SENTENCE.finditer(text))


def join_sentences(tokens: Tokens) -> list[Unit]:
    """Put the tokens of each sentence together; special tokens and patches stay alone."""
    spans = {segment: sentence_spans(text) for segment, text in tokens.sources.items()}
    return join_tokens(replace(tokens, words=spans))
