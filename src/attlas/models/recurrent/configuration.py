"""RecurrentConfig: what an attention model that is no transformer is made of."""

from typing import Any

from transformers import PretrainedConfig

from attlas.errors import UnknownNameError, UsageError

ENCODERS = ("bilstm", "bigru", "lstm", "orthogonal_lstm", "cnn", "average", "none")
ATTENTIONS = ("additive", "scaled_dot", "uniform")
READS = ("text", "pair", "question")
WIDTHS = {
    "bilstm": 256,
    "bigru": 100,
    "lstm": 256,
    "orthogonal_lstm": 256,
    "cnn": 128,
    "average": 128,
}
KERNELS = (1, 3, 5, 7)


class RecurrentConfig(PretrainedConfig):  # type: ignore[misc]
    """The parts and sizes of a model whose attention pools the states of an encoder.

    `reads` is what an input is: one text; a pair, whose first text is attended to in the light of
    the second; or a question with a text, whose second text is. `hidden_size` is the width of a
    state, of both directions together. With `sentences`, the ids of the tokens that end a sentence,
    the model is hierarchical: words are pooled into sentences, and sentences into the text.
    """

    model_type = "attlas_recurrent"

    def __init__(
        self,
        vocab_size: int = 100,
        vector_size: int = 256,
        encoder: str = "bilstm",
        attention: str = "additive",
        reads: str = "text",
        hidden_size: int | None = None,
        attention_size: int | None = None,
        kernels: tuple[int, ...] | list[int] = KERNELS,
        sentences: tuple[int, ...] | list[int] = (),
        dropout: float = 0.0,
        sentence_dropout: float = 0.0,
        output_dropout: float = 0.0,
        pad_token_id: int = 0,
        bos_token_id: int = 2,
        eos_token_id: int = 3,
        **others: Any,
    ) -> None:
        for kind, given, allowed in (
            ("encoder", encoder, ENCODERS),
            ("attention", attention, ATTENTIONS),
            ("kind of input", reads, READS),
        ):
            if given not in allowed:
                raise UnknownNameError(kind, given, allowed)
        if sentences and reads != "text":
            raise UsageError("a hierarchical model reads one text, not " + reads)
        self.vocab_size = vocab_size
        self.vector_size = vector_size
        self.encoder = encoder
        self.attention = attention
        self.reads = reads
        self.hidden_size = vector_size if encoder == "none" else hidden_size or WIDTHS[encoder]
        self.attention_size = attention_size or max(1, self.hidden_size // 2)
        self.kernels = list(kernels)
        self.sentences = list(sentences)
        self.dropout = dropout
        self.sentence_dropout = sentence_dropout
        self.output_dropout = output_dropout
        super().__init__(
            pad_token_id=pad_token_id,
            bos_token_id=bos_token_id,
            eos_token_id=eos_token_id,
            **others,
        )
