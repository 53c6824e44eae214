"""RecurrentForSequenceClassification: vectors, an encoder, attention over its states, a decoder."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from attlas.errors import UsageError
from attlas.models.recurrent.attentions import PoolingAttention, PoolingLayer, masked_softmax
from attlas.models.recurrent.configuration import RecurrentConfig
from attlas.models.recurrent.encoders import (
    SentenceEncoder,
    build_encoder,
    gathered,
    last_place,
    scattered,
)


@dataclass(frozen=True, eq=False)
class States:
    """What the last attention reads: states, which of them it may see, and the question."""

    hidden: Tensor  # [batch, token, feature]
    visible: Tensor  # [batch, token]
    question: Tensor | None = None  # [batch, feature]


class RecurrentForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """A classifier of texts, pairs, or questions over a text.

    Its steps can be taken one by one: `encode` gives the states, `weigh` the attention over them,
    `read` the logits under any attention. Of two labels, the logits are half of one number and its
    opposite, so that their softmax is the sigmoid of that number.
    """

    config_class = RecurrentConfig
    base_model_prefix = "recurrent"
    main_input_name = "input_ids"

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        if config.num_labels < 2:
            raise UsageError(f"a classifier has two or more labels, not {config.num_labels}")
        width = config.hidden_size
        self.vectors = nn.Embedding(
            config.vocab_size, config.vector_size, padding_idx=config.pad_token_id
        )
        self.drop = nn.Dropout(config.dropout)
        self.encoder = (
            SentenceEncoder(config)
            if config.sentences
            else build_encoder(config, config.vector_size)
        )
        self.pooling = nn.ModuleList([PoolingLayer(config)])
        self.question_encoder = (
            build_encoder(config, config.vector_size) if config.reads != "text" else None
        )
        outputs = 1 if config.num_labels == 2 else config.num_labels
        self.decoder = Decoder(width, outputs, config.reads != "text", config.output_dropout)
        self.post_init()

    @property
    def attention(self) -> PoolingAttention:
        """The attention that pools the states into what the decoder reads."""
        found: Any = self.pooling[0]
        attention: PoolingAttention = found.attention
        return attention

    def _init_weights(self, module: nn.Module) -> None:
        """The weights start as torch draws them."""

    def get_input_embeddings(self) -> nn.Module:
        """The vectors of the words."""
        return self.vectors

    def set_input_embeddings(self, value: Any) -> None:
        """Replace the vectors of the words."""
        self.vectors = value

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        attention_weights: Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """The logits of a batch; `attention_weights` `[batch, token]` replace the attention."""
        states = self.encode(input_ids, attention_mask, token_type_ids, inputs_embeds)
        if attention_weights is not None:
            return SequenceClassifierOutput(logits=self.read(states, attention_weights))
        pooled = self.pooling[0](states.hidden, states.visible[:, None], states.question)
        return SequenceClassifierOutput(logits=self.decode(pooled, states.question)[:, 0])

    def encode(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> States:
        """The states of the tokens that are attended to, all at the places of their tokens.

        `inputs_embeds` `[batch, token, vector]` replace the vectors of the words.
        """
        assert input_ids is not None
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        is_word = self._words(input_ids) & mask.bool()
        entered = self.vectors(input_ids) if inputs_embeds is None else inputs_embeds
        vectors = self.drop(entered)
        if self.config.sentences:
            return States(*self.encoder(vectors, input_ids, is_word))
        if self.question_encoder is None:
            states, _ = self.encoder(vectors, last_place(mask.bool()))
            return States(states, is_word)
        assert token_type_ids is not None
        attended = token_type_ids == (1 if self.config.reads == "question" else 0)
        own, other = mask.bool() & attended, mask.bool() & ~attended
        _, question = self.question_encoder(gathered(vectors, other)[0], other.sum(dim=1))
        front, places = gathered(vectors, own)
        states, _ = self.encoder(front, own.sum(dim=1))
        return States(scattered(states, places, own), is_word & attended, question)

    def weigh(self, states: States) -> Tensor:
        """The attention over the states, `[batch, token]`; exactly zero where nothing is seen."""
        return masked_softmax(self.attention.scores(states.hidden, states.question), states.visible)

    def read(self, states: States, weights: Tensor) -> Tensor:
        """The logits under this attention.

        Weights `[batch, token]` give `[batch, label]`; `[batch, variant, token]`, many attentions
        of each text in one call, give `[batch, variant, label]`.
        """
        several = weights if weights.ndim == 3 else weights[:, None]
        pooled = torch.matmul(several, states.hidden)
        logits = self.decode(pooled, states.question)
        return logits if weights.ndim == 3 else logits[:, 0]

    def decode(self, pooled: Tensor, question: Tensor | None) -> Tensor:
        """The logits of pooled states `[batch, variant, feature]`."""
        found: Tensor = self.decoder(pooled, question)
        return torch.cat([-found / 2, found / 2], dim=-1) if found.shape[-1] == 1 else found

    def _words(self, input_ids: Tensor) -> Tensor:
        """Which tokens are words: not the start, the end, or padding."""
        config = self.config
        edges = (config.pad_token_id, config.bos_token_id, config.eos_token_id)
        return torch.stack([input_ids != edge for edge in edges]).all(dim=0)


class Decoder(nn.Module):
    """From the pooled states, and the question if there is one, to the output."""

    def __init__(self, width: int, outputs: int, has_question: bool, dropout: float) -> None:
        super().__init__()
        inner = max(1, width // 2) if has_question else width
        self.drop = nn.Dropout(dropout)
        self.of_text = nn.Linear(width, inner) if has_question else None
        self.of_question = nn.Linear(width, inner) if has_question else None
        self.output = nn.Linear(inner, outputs)

    def forward(self, pooled: Tensor, question: Tensor | None) -> Tensor:
        """The output for pooled states `[batch, variant, feature]`."""
        if self.of_text is not None and self.of_question is not None and question is not None:
            pooled = (self.of_text(pooled) + self.of_question(question)[:, None]).tanh()
        found: Tensor = self.output(self.drop(pooled))
        return found
