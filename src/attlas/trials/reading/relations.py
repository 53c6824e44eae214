"""Which heads follow which syntactic relation better than a fixed distance between words does."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.data.files.conllu import Sentence
from attlas.errors import TextTooLongError, UnsupportedModelError, UsageError
from attlas.mathematics.intervals import simultaneous_bounds
from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.inputs import Inputs, group_by_shape, stack
from attlas.models.encoding.request import Request
from attlas.results import Site
from attlas.tokens import Tokens, overlap
from attlas.views.units import head_name, heads_by_key, layer_names

DIRECTIONS = ("from the word to its head", "from the head to the word")
OFFSETS = tuple(step for step in range(-10, 11) if step)
FEWEST = 10  # words with a relation, in each half of the sentences


@dataclass(frozen=True)
class FollowedRelation:
    """A relation and the attention head that follows it best, tested on other sentences.

    Accuracies are shares of the words with that relation whose syntactic head is guessed right;
    `offset` is the fixed distance that guesses best. `low` and `high` bound the gain of the head
    over that distance, for all relations at once.
    """

    relation: str
    words: int
    head: str
    direction: str
    accuracy: float
    offset: int
    offset_accuracy: float
    gain: float
    low: float
    high: float

    @property
    def shown_head(self) -> str:
        """What readers call the head."""
        return head_in_words(self.head)

    @property
    def beyond(self) -> bool:
        """Whether the head is significantly better than the distance."""
        return self.low > 0

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON."""
        return {**asdict(self), "beyond": self.beyond}


def head_in_words(key: str) -> str:
    """What readers call the head of this key, in a model with one stack."""
    site, _, number = key.partition(" head ")
    return head_name(layer_names([site])[site], number)


@dataclass(frozen=True, eq=False)
class _Hits:
    """How many words of each relation there are, and how many each guesser gets right."""

    relations: tuple[str, ...]
    words: NDArray[np.float64]  # `[sentence, relation]`
    heads: NDArray[np.float64]  # `[sentence, relation, guesser]`: both directions of every head
    offsets: NDArray[np.float64]  # `[sentence, relation, offset]`


def follow_relations(
    subject: OpenModel, sites: Sequence[Site], sentences: Sequence[Sentence], seed: int = 0
) -> list[FollowedRelation]:
    """Choose the best head, direction and distance for each relation on half of the sentences, and
    test them on the other half.

    The syntactic head of a word is guessed as the word that it attends to most, or that attends to
    it most. Attention to a word is the sum over its tokens, and attention from a word the mean;
    special tokens and the word itself are left out.
    """
    if subject.has_decoder:
        raise UnsupportedModelError(
            f"relations need a model with one stack, and {subject.name} has two"
        )
    hits = _count(subject, sites, sentences)
    order = np.random.default_rng(seed).permutation(len(hits.words))
    chosen_on, tested_on = order[: len(order) // 2], order[len(order) // 2 :]
    enough = [
        number
        for number in range(len(hits.relations))
        if min(hits.words[half, number].sum() for half in (chosen_on, tested_on)) >= FEWEST
    ]
    if not enough:
        raise UsageError(
            f"{len(sentences)} sentences are too few: no relation has {FEWEST} words in each half"
        )
    names = list(heads_by_key((site.name, site.heads) for site in sites)) * len(DIRECTIONS)
    heads = [int(hits.heads[chosen_on, number].sum(axis=0).argmax()) for number in enough]
    steps = [int(hits.offsets[chosen_on, number].sum(axis=0).argmax()) for number in enough]
    by_head = hits.heads[tested_on][:, enough, heads]
    by_step = hits.offsets[tested_on][:, enough, steps]
    words = hits.words[tested_on][:, enough]
    bounds = simultaneous_bounds((by_head - by_step)[..., None], words[..., None], seed)
    return [
        FollowedRelation(
            relation=hits.relations[number],
            words=int(words[:, place].sum()),
            head=names[heads[place]],
            direction=DIRECTIONS[heads[place] // (len(names) // 2)],
            accuracy=float(by_head[:, place].sum() / words[:, place].sum()),
            offset=OFFSETS[steps[place]],
            offset_accuracy=float(by_step[:, place].sum() / words[:, place].sum()),
            gain=bounds[place].mean,
            low=bounds[place].low,
            high=bounds[place].high,
        )
        for place, number in enumerate(enough)
    ]


def _count(subject: OpenModel, sites: Sequence[Site], sentences: Sequence[Sentence]) -> _Hits:
    relations = tuple(
        sorted({name for each in sentences for name in each.relations if name != "root"})
    )
    number_of = {name: number for number, name in enumerate(relations)}
    words, heads, offsets = [], [], []
    for sentence, weights in _word_attention(subject, sites, sentences):
        guesses = guess_heads(weights)
        truth = torch.tensor(sentence.heads)
        places = torch.arange(len(truth))
        steps = torch.tensor(OFFSETS)[:, None] + places
        rows = [number_of.get(name, -1) for name in sentence.relations]
        member = torch.tensor([[row == number for row in rows] for number in range(len(relations))])
        member = (member & (truth >= 0)).double()  # `[relation, word]`
        words.append(member.sum(dim=1).numpy())
        heads.append((member @ (guesses == truth).double().T).numpy())
        offsets.append((member @ (steps == truth).double().T).numpy())
    if len(words) < 2:
        raise UsageError(f"relations need two sentences that the model can read, not {len(words)}")
    return _Hits(relations, np.stack(words), np.stack(heads), np.stack(offsets))


def guess_heads(weights: Tensor) -> Tensor:
    """The guessed syntactic head of each word, `[guesser, word]`, from attention between words.

    `weights` is `[head, word, word]`. The guessers are the attention heads from the word to its
    head, and then those from the head to the word. −1 where there is no attention.
    """
    apart = weights.masked_fill(torch.eye(weights.shape[-1], dtype=torch.bool), 0)
    both = torch.cat([apart, apart.transpose(1, 2)])
    most, place = both.max(dim=-1)
    return torch.where(most > 0, place, -1)


def _word_attention(
    subject: OpenModel, sites: Sequence[Site], sentences: Sequence[Sentence]
) -> Iterator[tuple[Sentence, Tensor]]:
    """Each sentence that the model can read, with the attention between its words in every head."""
    encoded: list[tuple[Sentence, Inputs]] = []
    for sentence in sentences:
        try:
            encoded.append((sentence, encode_input(subject, list(sentence.words), Request())))
        except TextTooLongError:
            continue
    inputs = [each for _, each in encoded]
    if not inputs:
        return
    for group in group_by_shape(inputs, subject.rows_holding(inputs[0], sites)):
        batch = stack([inputs[i] for i in group])
        held = [call.weights for call in subject.read(batch) if call.site in sites]
        for row, index in enumerate(group):
            weights = torch.cat([each[row] for each in held]).double().cpu()
            yield encoded[index][0], between_words(weights, members(batch.tokens[row]))


def members(tokens: Tokens) -> Tensor:
    """Which tokens each word has, `[word, token]`."""
    (words,) = tokens.words.values()
    spans = tokens.spans()
    return torch.tensor(
        [[span is not None and overlap(span, word) for span in spans] for word in words]
    )


def between_words(weights: Tensor, member: Tensor) -> Tensor:
    """Attention between words, `[head, word, word]`, from attention between tokens.

    Attention to a word is the sum over its tokens, and attention from a word the mean.
    """
    marks = member.to(weights)
    mean = marks / marks.sum(dim=-1, keepdim=True).clamp_min(1)
    return mean @ weights @ marks.T
