"""Token ids: those of a target, and the text that ids decode to with the place of each in it."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from numbers import Integral
from typing import Any

from attlas.errors import UsageError
from attlas.tokens import Span, Tokens

# Some decoders treat the first token specially, so tokens are decoded behind a few others.
TOKENS_BEFORE = 8


def is_number(target: Any) -> bool:
    """Whether this is an integer, numpy integers included and booleans excluded."""
    return isinstance(target, Integral) and not isinstance(target, bool)


def token_ids(tokenizer: Any, target: Any, written: bool = False) -> list[int]:
    """The ids of a target: an id, a token in the tokenizer's own spelling, or a string.

    `written` asks for the ids that a decoder writes, which may differ from those that it reads.
    """
    if is_number(target):
        if not 0 <= target < len(tokenizer):
            raise UsageError(f"unknown token id {target}: there are 0 to {len(tokenizer) - 1}")
        return [int(target)]
    if not isinstance(target, str) or not target:
        raise UsageError(f"a target is a string or a token id, not {target!r}")
    return _known(tokenizer, target, text_ids(tokenizer, target, written))


def text_ids(tokenizer: Any, text: str, written: bool) -> list[int]:
    """The ids of a text that need not be known to the tokenizer, such as a prefix."""
    given = {"text_target" if written else "text": text}
    return _own_token(tokenizer, text, tokenizer(**given, add_special_tokens=False)["input_ids"])


def following_ids(tokenizer: Any, prompt: Tokens, target: Any, written: str | None) -> list[int]:
    """The ids of a target behind a prompt, which may differ from its ids on its own.

    `written` is a chat as its template writes it; it contains its special tokens.
    """
    plain = written is not None
    text = written if plain else prompt.sources.get("text")
    if isinstance(target, str) and target and text is not None:
        before = tokenizer.convert_tokens_to_ids(list(prompt.texts))
        alone = tokenizer(text, add_special_tokens=not plain)["input_ids"]
        whole = tokenizer(text + target, add_special_tokens=not plain)["input_ids"]
        # A prompt that was cut or ends in a special token is not followed by the target.
        if alone == before and len(whole) > len(before) and whole[: len(before)] == before:
            return _known(tokenizer, target, _own_token(tokenizer, target, whole[len(before) :]))
    return token_ids(tokenizer, target)


def _own_token(tokenizer: Any, target: str, ids: list[int]) -> list[int]:
    known: dict[str, int] = tokenizer.get_vocab()
    return [known[target]] if len(ids) != 1 and target in known else list(ids)


def _known(tokenizer: Any, target: str, ids: list[int]) -> list[int]:
    """The ids; a target that the tokenizer reads as its unknown token is refused."""
    if tokenizer.unk_token_id in ids and tokenizer.unk_token not in target:
        raise UsageError(f"the tokenizer does not know {target!r}: it reads {tokenizer.unk_token}")
    return ids


def spellings_of(tokenizer: Any, ids: Sequence[int]) -> dict[int, str]:
    """How the tokenizer writes each of these ids; raises if it does not know one."""
    count, distinct = len(tokenizer), list(dict.fromkeys(ids))
    wrong = [number for number in distinct if not 0 <= number < count]
    if wrong:  # unless this vocabulary has gaps in its ids
        known = set(tokenizer.get_vocab().values())
        wrong = [number for number in wrong if number not in known]
    texts = [] if wrong else tokenizer.convert_ids_to_tokens(distinct)
    wrong += [number for number, text in zip(distinct, texts, strict=False) if text is None]
    if wrong:
        raise UsageError(f"unknown token id {wrong[0]}: this tokenizer has 0 to {count - 1}")
    return dict(zip(distinct, texts, strict=True))


def show_ids(tokenizer: Any, ids: Sequence[int]) -> str:
    """Token ids as readable text."""
    text: str = tokenizer.decode(list(ids))
    if text:
        return text
    names = tokenizer.convert_ids_to_tokens(list(ids))  # None for choices beyond the vocabulary
    return " ".join(name or f"[{number}]" for name, number in zip(names, ids, strict=True))


def decode_with_offsets(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool]
) -> tuple[str, tuple[Span | None, ...]]:
    """Decode ids into a text, with the span of each token in it; None for special tokens."""
    content = [number for number, mark in zip(ids, special, strict=True) if not mark]
    whole = _decode(tokenizer, content)
    spans = _quick_places(tokenizer, content, whole) or _places(tokenizer, content, whole)
    if len(spans) == len(ids):
        return whole, tuple(spans)
    found = iter(spans)
    return whole, tuple(None if mark else next(found) for mark in special)


def offsets_by_decoding(
    tokenizer: Any, ids: Sequence[int], special: Sequence[bool], text: str
) -> tuple[Span | None, ...]:
    """Offsets for a tokenizer without any; all None if it does not decode to the text."""
    decoded, spans = decode_with_offsets(tokenizer, ids, special)
    shift = text.find(decoded) if decoded else -1
    if shift < 0:
        return (None,) * len(ids)
    return tuple(span and (span[0] + shift, span[1] + shift) for span in spans)


def _quick_places(tokenizer: Any, content: Sequence[int], whole: str) -> list[Span]:
    """The span of each token, from a few calls for all of them; none if they do not tell."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not content:
        return []
    known = list(dict.fromkeys(content))
    texts = backend.decode_batch([(number,) for number in known], skip_special_tokens=False)
    alone = list(map(dict(zip(known, texts, strict=True)).__getitem__, content))
    return _places_in_turn(alone, whole) or _places_in_pairs(backend, content, alone, whole)


def _places_in_turn(alone: Sequence[str], whole: str) -> list[Span]:
    """The span of each token if the whole is their texts one after another, or a space between."""
    distinct = set(alone)
    if "" in distinct:
        return []
    between = "" if len(whole) == sum(map(len, alone)) else " "
    if between.join(alone) == whole and not (between and any(each[0] == " " for each in distinct)):
        ends = accumulate(len(text) + len(between) for text in alone)
        return list(pairwise([0, *(end - len(between) for end in ends)]))
    spans: list[Span] = []
    start = 0
    for text in alone:
        end = start + len(text)
        if whole[start:end] != text:
            end += 1
            if whole[start:end] != f" {text}":
                return []
        spans.append((start, end))
        start = end
    return spans if start == len(whole) else []


def _places_in_pairs(
    backend: Any, content: Sequence[int], alone: Sequence[str], whole: str
) -> list[Span]:
    """The span of each token, by what it adds behind the one before it; none if that is not whole.

    All pairs are decoded in one call, which thousands of tokens need.
    """
    pairs = backend.decode_batch(list(pairwise(content)), skip_special_tokens=False)
    before, behind = ["", *alone[:-1]], [alone[0], *pairs]
    more = [now[len(then) :] for then, now in zip(before, behind, strict=True)]
    follow = all(map(str.startswith, behind, before))
    if not follow or not all(more) or "".join(more) != whole:
        return []
    return list(pairwise(accumulate(map(len, more), initial=0)))


def _places(tokenizer: Any, content: Sequence[int], whole: str) -> list[Span]:
    """The span of each token in the whole text, found by decoding one more token at a time.

    Tokens that are pieces of one character share its span.
    """
    spans: list[Span] = []
    start, settled = 0, [0]
    for count in range(1, len(content) + 1):
        first, done = settled[-TOKENS_BEFORE:][0], settled[-1]
        before = _decode(tokenizer, content[first:done])
        now = _decode(tokenizer, content[first:count])
        more = now[len(before) :] if now.startswith(before) else ""
        if count == len(content):
            end = len(whole)
        elif more and whole.startswith(more, start):
            end = start + len(more)
        else:
            continue
        spans += [(start, end)] * (count - done)
        settled.append(count)
        start = end
    return spans


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    text: str = tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
    return text
