"""RecurrentForConditionalGeneration: an encoder–decoder of recurrent networks with attention."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput

from attlas.errors import UnknownNameError, UsageError
from attlas.models.recurrent.decoding import BahdanauLayer, LuongLayer
from attlas.models.recurrent.encoders import RecurrentEncoder
from attlas.models.recurrent.places import last_place

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
