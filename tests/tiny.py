"""Tiny random models of many families: built offline from configurations, seeded, in eval mode.

Weights have a wider spread than transformers gives them, so that attention is far from uniform and
biases, norms and sinks are not the zeros and ones that would hide a mistake.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import transformers
from tiny_tokenizers import KINDS as TOKENIZER_KINDS
from tiny_tokenizers import tokenizer
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import (
    CLIPImageProcessorPil,
    CLIPProcessor,
    LlavaProcessor,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    ViTImageProcessorPil,
)

__all__ = [
    "FAMILIES",
    "SECOND_ROAD",
    "TASKS",
    "TOKENIZER_KINDS",
    "Case",
    "subject_parts",
    "tokenizer",
]

VOCABULARY = 96
LENGTH = 12
TARGET_LENGTH = 7
WINDOW = 4
FIRST_ORDINARY_ID = 6
SPREAD = 0.3
SPECIAL_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
# A layer with its norm last makes all tokens alike if it adds more than was there before.
WRITERS = ("out_proj.weight", "fc2.weight", "output.dense.weight")
LABELS = ("NEGATIVE", "NEUTRAL", "POSITIVE")
IMAGE = {"image_size": 32, "patch_size": 8}


@dataclass(frozen=True)
class Case:
    """One model, one input it accepts, and the attention calls that this input causes."""

    name: str
    model: PreTrainedModel
    inputs: dict[str, Tensor]
    sites: int
    kinds: dict[str, int]


def labels(*names: str) -> dict[str, Any]:
    """The configuration entries that give a model these labels, in this order."""
    return {
        "id2label": dict(enumerate(names)),
        "label2id": {name: index for index, name in enumerate(names)},
    }


def imported(name: str) -> type[PreTrainedModel]:
    """A class of transformers, whose module may be imported only now."""
    with warnings.catch_warnings():
        # DeBERTa's modules call torch.jit.script on import.
        warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", DeprecationWarning)
        return getattr(transformers, name)


def build(
    family: str,
    head: str,
    settings: dict[str, Any],
    *,
    spread: float = SPREAD,
    seed: int = 0,
) -> PreTrainedModel:
    """`<family><head>` from `<family>Config`, on sdpa attention if the family supports it."""
    config = getattr(transformers, f"{family}Config")(**settings)
    model_class = imported(f"{family}{head}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(config)
        widen(model, spread)
    if model._supports_sdpa:
        model.set_attn_implementation("sdpa")
    return model.eval()


@torch.no_grad()
def widen(model: PreTrainedModel, spread: float) -> None:
    """Redraw the matrices, and add noise to the vectors."""
    for name, parameter in model.named_parameters():
        # Sinusoidal position tables are frozen parameters, and a scalar is a temperature.
        if not parameter.requires_grad or parameter.dim() == 0:
            continue
        if name.endswith("sinks"):
            parameter.normal_(0.0, 1.0)
        elif ".q_norm." in name or ".k_norm." in name:
            # A norm on queries and keys determines the size of the scores, whatever the spread.
            parameter.normal_(1.6, 0.1)
        elif parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
        elif name.endswith(WRITERS):
            parameter.normal_(0.0, spread / 3)
        else:
            parameter.normal_(0.0, spread)


def token_ids(length: int, seed: int, vocabulary: int = VOCABULARY) -> Tensor:
    """One row of ids, none of them special."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_ORDINARY_ID, vocabulary, (1, length), generator=generator)


def text_inputs() -> dict[str, Tensor]:
    """A sentence."""
    ids = token_ids(LENGTH, seed=1)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def pair_inputs(start: int) -> dict[str, Tensor]:
    """A sentence and the beginning of its translation."""
    target = token_ids(TARGET_LENGTH, seed=2)
    target[0, 0] = start
    return {**text_inputs(), "decoder_input_ids": target}


def image_inputs() -> dict[str, Tensor]:
    """An image."""
    size = IMAGE["image_size"]
    generator = torch.Generator().manual_seed(3)
    return {"pixel_values": torch.randn(1, 3, size, size, generator=generator)}


def case(name: str, model: PreTrainedModel, inputs: dict[str, Tensor], **kinds: int) -> Case:
    """A case whose number of sites is the sum of its kinds."""
    return Case(name, model, inputs, sum(kinds.values()), kinds)


def encoder(
    family: str, *, name: str, layers: int = 2, spread: float = SPREAD, **shape: Any
) -> Case:
    """A sequence classifier; `shape` gives its sizes by the family's own names."""
    settings = {**TEXT, **labels(*LABELS), **shape}
    model = build(family, "ForSequenceClassification", settings, spread=spread)
    return case(name, model, text_inputs(), encoder=layers)


def bert_like(family: str, *, name: str, layers: int = 2, **settings: Any) -> Case:
    """A sequence classifier with BERT's names for its sizes."""
    shape = {**BERT_SHAPE, "num_hidden_layers": layers, **settings}
    return encoder(family, name=name, layers=layers, **shape)


def decoder(family: str, head: str = "ForCausalLM", *, name: str, **shape: Any) -> Case:
    """A causal language model; `shape` gives its sizes by the family's own names."""
    return case(name, build(family, head, {**TEXT, **shape}), text_inputs(), decoder=2)


def llama_like(family: str, *, name: str, **settings: Any) -> Case:
    """A causal language model with Llama's names for its sizes, and grouped keys and values."""
    return decoder(family, name=name, **{**LLAMA_SHAPE, **settings})


def translator(
    family: str,
    head: str = "ForConditionalGeneration",
    *,
    name: str,
    spread: float = SPREAD,
    **shape: Any,
) -> Case:
    """An encoder-decoder; `shape` gives its sizes by the family's own names."""
    model = build(family, head, {**TEXT, **shape}, spread=spread)
    inputs = pair_inputs(shape["decoder_start_token_id"])
    depth = shape.get("decoder_layers") or shape["num_decoder_layers"]
    return case(name, model, inputs, encoder=2, decoder=depth, cross=depth)


def merged(vocabulary: dict[str, int]) -> PreTrainedModel:
    """An encoder-decoder whose decoder reads both streams in one softmax."""
    text = {**vocabulary, **LLAMA_SHAPE, "head_dim": 8, "query_pre_attn_scalar": 64, **ALTERNATING}
    tower = {**TOWER, "num_hidden_layers": 1, **IMAGE}
    reader = {"text_config": text, "vision_config": tower, "mm_tokens_per_image": 4}
    settings = {"encoder": reader, "decoder": text, "eoi_token_index": 5, "image_token_index": 4}
    return build("T5Gemma2", "ForConditionalGeneration", settings)


def merged_translator(*, name: str) -> Case:
    """T5Gemma 2 on a text alone: its tower of pictures does not run."""
    inputs = pair_inputs(SPECIAL_IDS["bos_token_id"])
    return case(name, merged(TEXT), inputs, encoder=2, decoder=2, cross=2)


def merged_subject() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """T5Gemma 2 with the vocabulary of a tokenizer."""
    words = tokenizer("wordpiece")
    ids = {name: getattr(words, name) for name in SPECIAL_IDS}
    model = merged({"vocab_size": len(words), **ids})
    model.generation_config.decoder_start_token_id = 2
    return model, words


def vit(*, name: str) -> Case:
    """An image classifier over sixteen patches."""
    settings = {**TOWER, **IMAGE, **labels(*LABELS)}
    return case(name, build("ViT", "ForImageClassification", settings), image_inputs(), vision=2)


def clip(*, name: str) -> Case:
    """Two towers of different depth, with a sentence and an image as input."""
    # An end-of-sequence id of 2 would send the text tower down its path for old checkpoints.
    end = 5
    text = {**TEXT, **TOWER, "eos_token_id": end, "max_position_embeddings": 64}
    vision = {**TOWER, **IMAGE, "num_hidden_layers": 3}
    settings = {"text_config": text, "vision_config": vision, "projection_dim": 16}
    inputs = {**text_inputs(), **image_inputs()}
    inputs["input_ids"][0, -1] = end
    return case(name, build("CLIP", "Model", settings), inputs, encoder=2, vision=3)


TEXT: dict[str, Any] = {"vocab_size": VOCABULARY, **SPECIAL_IDS}
SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
TOWER: dict[str, Any] = {**SIZES, "intermediate_size": 64}
# RoBERTa's family counts positions from after the padding id, so 66 positions hold 64 tokens.
BERT_SHAPE = {**TOWER, "max_position_embeddings": 66}
LLAMA_SHAPE = {**TOWER, "num_key_value_heads": 2, "max_position_embeddings": 64}
OPT_SHAPE = {**SIZES, "word_embed_proj_dim": 32, "ffn_dim": 64, "max_position_embeddings": 64}
GPT2_SHAPE = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
BART_SHAPE = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 64,
    "decoder_start_token_id": SPECIAL_IDS["eos_token_id"],
    "forced_eos_token_id": SPECIAL_IDS["eos_token_id"],
    "scale_embedding": True,
}
T5_SHAPE = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    # The cache of generate() is as deep as T5's encoder, so its decoder may not be deeper.
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "decoder_start_token_id": SPECIAL_IDS["pad_token_id"],
}
# T5 does not scale its scores: the common spread would give one key all the weight.
UNSCALED_SPREAD = 0.18
FALCON_SHAPE = {
    **SIZES,
    "num_kv_heads": 2,
    "ffn_hidden_size": 64,
    "new_decoder_architecture": True,
    "max_position_embeddings": 64,
}
FUNNEL_SHAPE = {"block_sizes": [1, 2], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64}
MPT_SHAPE = {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64, "expansion_ratio": 2}
XLNET_SHAPE = {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}
DISTILBERT_SHAPE = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 64,
    "max_position_embeddings": 64,
}
MODERNBERT = {"local_attention": WINDOW, "cls_token_id": 0, "sep_token_id": 2}
YARN = {
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": 16,
    }
}
ALTERNATING = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
SOFT_CAP = {"query_pre_attn_scalar": 8, "attn_logit_softcapping": 3.0}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
GRANITE = {"attention_multiplier": 0.5, "residual_multiplier": 0.7, "embedding_multiplier": 2.0}
RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}


def named(recipes: dict[str, Callable[..., Case]]) -> dict[str, Callable[[], Case]]:
    """Each recipe with its own name as an argument."""
    return {name: partial(recipe, name=name) for name, recipe in recipes.items()}


FAMILIES: dict[str, Callable[[], Case]] = named(
    {
        "bert": partial(bert_like, "Bert"),
        "roberta": partial(bert_like, "Roberta"),
        "xlm_roberta": partial(bert_like, "XLMRoberta"),
        "camembert": partial(bert_like, "Camembert"),
        "distilbert": partial(encoder, "DistilBert", **DISTILBERT_SHAPE),
        "albert": partial(bert_like, "Albert", layers=3, embedding_size=16),
        "electra": partial(bert_like, "Electra", embedding_size=16),
        "modernbert": partial(bert_like, "ModernBert", layers=3, **MODERNBERT),
        "gpt2": partial(decoder, "GPT2", "LMHeadModel", **GPT2_SHAPE),
        "gpt_neox": partial(decoder, "GPTNeoX", **TOWER, max_position_embeddings=64),
        "opt": partial(decoder, "OPT", **OPT_SHAPE),
        "llama": partial(llama_like, "Llama"),
        "mistral": partial(llama_like, "Mistral", sliding_window=WINDOW),
        "qwen2": partial(llama_like, "Qwen2"),
        "qwen3": partial(llama_like, "Qwen3", head_dim=8),
        "gemma2": partial(llama_like, "Gemma2", head_dim=8, **SOFT_CAP, **ALTERNATING),
        "phi3": partial(llama_like, "Phi3"),
        "olmo2": partial(llama_like, "Olmo2"),
        "gpt_oss": partial(llama_like, "GptOss", head_dim=8, **YARN, **EXPERTS, **ALTERNATING),
        "granite": partial(llama_like, "Granite", **GRANITE),
        "cohere2": partial(llama_like, "Cohere2", **ALTERNATING),
        "mixtral": partial(llama_like, "Mixtral", **EXPERTS),
        "t5": partial(translator, "T5", spread=UNSCALED_SPREAD, **T5_SHAPE),
        "mt5": partial(translator, "MT5", spread=UNSCALED_SPREAD, **T5_SHAPE),
        "bart": partial(translator, "Bart", **BART_SHAPE),
        "mbart": partial(translator, "MBart", **BART_SHAPE),
        "marian": partial(translator, "Marian", "MTModel", spread=0.22, **BART_SHAPE),
        "pegasus": partial(translator, "Pegasus", **BART_SHAPE),
        "t5gemma2": merged_translator,
        "vit": vit,
        "clip": clip,
    }
)

# Families whose attention does not go through transformers' AttentionInterface.
SECOND_ROAD: dict[str, Callable[[], Case]] = named(
    {
        "deberta": partial(bert_like, "Deberta", **RELATIVE),
        "deberta_v2": partial(bert_like, "DebertaV2", **RELATIVE),
        "mpnet": partial(bert_like, "MPNet"),
        "xlnet": partial(encoder, "XLNet", spread=0.5, **XLNET_SHAPE),
        "funnel": partial(encoder, "Funnel", layers=3, **FUNNEL_SHAPE),
        "bloom": partial(decoder, "Bloom", hidden_size=32, n_layer=2, n_head=4),
        "falcon": partial(decoder, "Falcon", **FALCON_SHAPE),
        "lilt": partial(bert_like, "Lilt", hidden_size=48, channel_shrink_ratio=2),
        "gptj": partial(decoder, "GPTJ", rotary_dim=4, **GPT2_SHAPE),
        "mpt": partial(decoder, "Mpt", **MPT_SHAPE),
    }
)


def text_subject(
    family: str,
    head: str,
    kind: str,
    spread: float = SPREAD,
    **shape: Any,
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A model with the vocabulary and special ids of a tokenizer of this kind."""
    words = tokenizer(kind)
    ids = {name: getattr(words, name) for name in SPECIAL_IDS}
    settings = {**shape, "vocab_size": len(words), **ids}
    return build(family, head, settings, spread=spread), words


def image_subject() -> tuple[PreTrainedModel, ViTImageProcessorPil]:
    """A ViT and the image processor that needs no torchvision."""
    size = {"height": IMAGE["image_size"], "width": IMAGE["image_size"]}
    model = build(
        "ViT", "ForImageClassification", {**TOWER, **IMAGE, **labels("cat", "dog", "fox")}
    )
    return model, ViTImageProcessorPil(size=size)


def clip_subject() -> tuple[PreTrainedModel, CLIPProcessor]:
    """Two towers of different depth and width, and the processor for both."""
    words = deepcopy(tokenizer("bpe"))
    # An end-of-sequence id of 2 would send the text tower down its path for old checkpoints.
    words.add_special_tokens({"eos_token": "<end>"})
    words.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A <end>", special_tokens=[("<end>", words.eos_token_id)]
    )
    ids = {"eos_token_id": words.eos_token_id, "bos_token_id": 0, "pad_token_id": 1}
    text = {**TOWER, "vocab_size": len(words), **ids, "max_position_embeddings": 64}
    vision = {**TOWER, **IMAGE, "hidden_size": 48, "num_hidden_layers": 3}
    settings = {"text_config": text, "vision_config": vision, "projection_dim": 16}
    size = {"height": IMAGE["image_size"], "width": IMAGE["image_size"]}
    pictures = CLIPImageProcessorPil(size=size, crop_size=size)
    return build("CLIP", "Model", settings), CLIPProcessor(pictures, words)


def lxmert_subject() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A model of text and objects, which first read themselves and then each other."""
    shape = {
        **SIZES,
        **{"intermediate_size": 64, "max_position_embeddings": 64, "visual_feat_dim": 10},
        **{"l_layers": 3, "r_layers": 2, "x_layers": 2, "num_qa_labels": 5},
    }
    return text_subject("Lxmert", "ForQuestionAnswering", "wordpiece", **shape)


def bert_subject(head: str, *names: str, **settings: Any) -> Callable[[], Any]:
    """A recipe for BERT with this head over these labels."""
    shape = {**BERT_SHAPE, **(labels(*names) if names else {}), **settings}
    return partial(text_subject, "Bert", head, "wordpiece", **shape)


TASKS: dict[str, Callable[[], Any]] = {
    "sequence classification": bert_subject("ForSequenceClassification", *LABELS),
    "multi-label": bert_subject(
        "ForSequenceClassification",
        *("TOXIC", "INSULT", "THREAT"),
        problem_type="multi_label_classification",
    ),
    "regression": bert_subject("ForSequenceClassification", "SCORE", problem_type="regression"),
    "next sentence": bert_subject("ForNextSentencePrediction", "IS_NEXT", "NOT_NEXT"),
    "token classification": bert_subject(
        "ForTokenClassification", "O", "B-PER", "I-PER", "B-LOC", "I-LOC"
    ),
    "question answering": bert_subject("ForQuestionAnswering"),
    "masked lm": bert_subject("ForMaskedLM"),
    "causal lm": partial(text_subject, "GPT2", "LMHeadModel", "bpe", **GPT2_SHAPE),
    "sequence to sequence": partial(
        text_subject,
        "T5",
        "ForConditionalGeneration",
        "unigram",
        spread=UNSCALED_SPREAD,
        **T5_SHAPE,
    ),
    "image classification": image_subject,
}


def subject_parts(task: str) -> tuple[PreTrainedModel, Any]:
    """A fresh model for one of `TASKS`, and the tokenizer or image processor that feeds it."""
    return TASKS[task]()


def llava_subject() -> tuple[PreTrainedModel, LlavaProcessor]:
    """A language model that reads pictures of 4 × 4 patches within its text, and its processor."""
    words = deepcopy(tokenizer("bpe"))
    words.add_special_tokens({"additional_special_tokens": ["<image>"]})
    mark = words.convert_tokens_to_ids("<image>")
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    text = {**SIZES, "model_type": "llama", "vocab_size": len(words), **ids}
    text |= {"intermediate_size": 64, "num_key_value_heads": 2, "max_position_embeddings": 128}
    vision = {**TOWER, **IMAGE, "model_type": "clip_vision_model"}
    settings = {"text_config": text, "vision_config": vision, "image_token_id": mark}
    size = {"height": IMAGE["image_size"], "width": IMAGE["image_size"]}
    pictures = CLIPImageProcessorPil(size=size, crop_size=size)
    processor = LlavaProcessor(
        pictures,
        words,
        patch_size=IMAGE["patch_size"],
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    model = build("Llava", "ForConditionalGeneration", {**settings, "vision_feature_layer": -1})
    return model, processor


WAVE_SHAPE = {
    **TOWER,
    **{"conv_dim": [16, 16], "conv_stride": [5, 64], "conv_kernel": [10, 64]},
    **{"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4},
    **{"num_conv_pos_embedding_groups": 2, "classifier_proj_size": 16},
}


def wave_subject(family: str, head: str, **settings: Any) -> tuple[PreTrainedModel, Any]:
    """A model that reads samples, in frames of 20 ms, and the extractor that prepares them."""
    known = labels("ONE", "TWO", "THREE") if head != "ForCTC" else {}
    model = build(family, head, {**WAVE_SHAPE, **known, **settings})
    return model, transformers.Wav2Vec2FeatureExtractor()


def letters_subject() -> tuple[PreTrainedModel, Any]:
    """A model that hears letters in frames, and the processor with its tokenizer."""
    words = tokenizer("bpe")
    settings = {"vocab_size": len(words), "pad_token_id": 1}
    model, extractor = wave_subject("Wav2Vec2", "ForCTC", **settings)
    return model, transformers.Wav2Vec2Processor(extractor, words)


def patches_of_sound_subject() -> tuple[PreTrainedModel, Any]:
    """A classifier of spectrograms in patches, four bands by eight moments."""
    strides = {"patch_size": 8, "frequency_stride": 8, "time_stride": 8}
    shape = {**TOWER, **strides, "max_length": 64, "num_mel_bins": 32, **labels("ONE", "TWO")}
    extractor = transformers.ASTFeatureExtractor(num_mel_bins=32, max_length=64)
    return build("AST", "ForAudioClassification", shape), extractor


def whisper_subject() -> tuple[PreTrainedModel, Any]:
    """A model that writes what it hears, and its processor; it reads one second."""
    words = tokenizer("bpe")
    own = {"num_mel_bins": 16, "max_source_positions": 50, "max_target_positions": 64}
    none = dict.fromkeys(("forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"))
    shape = {**BART_SHAPE, **SPECIAL_IDS, **own, **none, "vocab_size": len(words)}
    extractor = transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    model = build("Whisper", "ForConditionalGeneration", shape)
    return model, transformers.WhisperProcessor(extractor, words)
