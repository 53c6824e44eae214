"""RecurrentForConditionalGeneration: an encoder–decoder of recurrent networks with attention.

Bahdanau et al. attend before each step, so every state depends on the attention of the last one;
Luong et al. attend after the network has run.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput

from attlas.errors import UnknownNameError, UsageError
from attlas.models.recurrent.attentions import LuongAttention, masked_softmax
from attlas.models.recurrent.encoders import RecurrentEncoder, last_place


class BahdanauDecoder(nn.Module):
    """In each step, v · tanh(W s + U h) weighs the source, and what it finds enters the network.

    It owns all softmaxes of a text, one for each step: a row of its map each.
    """

    num_heads: ClassVar[int] = 1

    def __init__(self, vector_size: int, width: int, inner: int) -> None:
        super().__init__()
        self.of_state = nn.Linear(width, inner, bias=False)
        self.of_source = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, 1, bias=False)
        self.cell = nn.GRUCell(vector_size + width, width)
        self.joined = nn.Linear(vector_size + 2 * width, width)

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor, start: Tensor
    ) -> Tensor:
        """The states that the output is read from, `[batch, token, feature]`.

        `hidden_states` are the vectors of what was written; `visible` is `[batch, source]`.
        """
        keys, state, found = self.of_source(encoder_hidden_states), start, []
        for vector in hidden_states.unbind(dim=1):
            scores = self.outer((self.of_state(state)[:, None] + keys).tanh()).squeeze(-1)
            weights = masked_softmax(scores[:, None, None], visible[:, None, None])
            context = torch.matmul(weights, encoder_hidden_states[:, None])[:, 0, 0]
            state = self.cell(torch.cat([vector, context], dim=-1), state)
            found.append(torch.cat([vector, state, context], dim=-1))
        output: Tensor = self.joined(torch.stack(found, dim=1)).tanh()
        return output


class BahdanauLayer(nn.Module):
    """The layer of a decoder that attends before each step."""

    def __init__(self, vector_size: int, width: int) -> None:
        super().__init__()
        self.attention = BahdanauDecoder(vector_size, width, max(1, width // 2))

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor, start: Tensor
    ) -> Tensor:
        """The states that the output is read from, `[batch, token, feature]`."""
        output: Tensor = self.attention(hidden_states, encoder_hidden_states, visible, start)
        return output


class LuongLayer(nn.Module):
    """The layer of a decoder that attends after the network has run."""

    def __init__(self, vector_size: int, width: int) -> None:
        super().__init__()
        self.network = nn.GRU(vector_size, width, batch_first=True)
        self.attention = LuongAttention(width)
        self.joined = nn.Linear(2 * width, width)

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor, start: Tensor
    ) -> Tensor:
        """The states that the output is read from, `[batch, token, feature]`."""
        # cuDNN lets gradients through a network in training mode alone; there is no dropout in it.
        mode, self.network.training = self.network.training, True
        try:
            states, _ = self.network(hidden_states, start[None].contiguous())
        finally:
            self.network.training = mode
        context = self.attention(states, encoder_hidden_states, visible)
        output: Tensor = self.joined(torch.cat([context, states], dim=-1)).tanh()
        return output


LAYERS = {"bahdanau": BahdanauLayer, "luong": LuongLayer}


class RecurrentWriterConfig(PretrainedConfig):  # type: ignore[misc]
    """The parts and sizes of an encoder–decoder of recurrent networks."""

    model_type = "attlas_recurrent_writer"

    def __init__(
        self,
        vocab_size: int = 100,
        vector_size: int = 32,
        hidden_size: int = 128,
        attention: str = "bahdanau",
        pad_token_id: int = 0,
        bos_token_id: int = 1,
        eos_token_id: int = 2,
        **others: Any,
    ) -> None:
        if attention not in LAYERS:
            raise UnknownNameError("attention", attention, LAYERS)
        self.vocab_size = vocab_size
        self.vector_size = vector_size
        self.hidden_size = hidden_size
        self.attention = attention
        others.setdefault("decoder_start_token_id", bos_token_id)
        others["is_encoder_decoder"] = True
        super().__init__(
            pad_token_id=pad_token_id,
            bos_token_id=bos_token_id,
            eos_token_id=eos_token_id,
            **others,
        )


class RecurrentForConditionalGeneration(PreTrainedModel):  # type: ignore[misc]
    """It reads a source in both directions and writes token by token, with Bahdanau or Luong."""

    config_class = RecurrentWriterConfig
    base_model_prefix = "recurrent"
    main_input_name = "input_ids"

    def __init__(self, config: RecurrentWriterConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.vectors = nn.Embedding(config.vocab_size, config.vector_size, config.pad_token_id)
        self.encoder = RecurrentEncoder(nn.GRU, config.vector_size, width)
        self.start = nn.Linear(width, width)
        self.decoder = nn.ModuleList([LAYERS[config.attention](config.vector_size, width)])
        self.output = nn.Linear(width, config.vocab_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """The weights start as torch draws them."""

    def get_input_embeddings(self) -> nn.Module:
        """The vectors of the tokens, the same for what is read and what is written."""
        return self.vectors

    def set_input_embeddings(self, value: Any) -> None:
        """Replace the vectors of the tokens."""
        self.vectors = value

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        """The logits of the token behind each written one."""
        assert input_ids is not None and decoder_input_ids is not None
        states, visible, start = self.encode(input_ids, attention_mask)
        written = self.decoder[0](self.vectors(decoder_input_ids), states, visible, start)
        return Seq2SeqLMOutput(logits=self.output(written))

    def encode(
        self, input_ids: Tensor, attention_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The states of the source, which of them can be seen, and where the decoder starts."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states, last = self.encoder(self.vectors(input_ids), last_place(mask.bool()))
        edges = (self.config.pad_token_id, self.config.bos_token_id, self.config.eos_token_id)
        is_text = torch.stack([input_ids != edge for edge in edges]).all(dim=0)
        return states, is_text & mask.bool(), self.start(last).tanh()

    @torch.no_grad()
    def generate(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        max_new_tokens: int = 20,
        do_sample: bool = False,
        num_beams: int = 1,
        **_: Any,
    ) -> Tensor:
        """Write greedily, up to the end or `max_new_tokens`: the start, and what was written."""
        if do_sample or num_beams > 1:
            raise UsageError(f"{type(self).__name__} writes greedily: no samples, no beams")
        states, visible, start = self.encode(input_ids, attention_mask)
        first = self.config.decoder_start_token_id
        written = input_ids.new_full((len(input_ids), 1), first)
        ended = torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        for _step in range(max_new_tokens):
            found = self.decoder[0](self.vectors(written), states, visible, start)
            best = self.output(found[:, -1]).argmax(dim=-1)
            best = best.masked_fill(ended, self.config.pad_token_id)
            written = torch.cat([written, best[:, None]], dim=1)
            ended = ended | (best == self.config.eos_token_id)
            if ended.all():
                break
        return written
