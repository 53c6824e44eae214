"""The token ids of a target: given as an id, as a token or as a string of several tokens."""

from numbers import Integral
from typing import Any

from attlas.errors import UsageError
from attlas.tokens import Tokens


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
