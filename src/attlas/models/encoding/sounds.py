"""Sounds: their frames as tokens with seconds, and a spectrogram to draw them on."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.encoding.encode import Encoded
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.tap.folding import fold_calls
from attlas.tokens import Grid, Tokens

SOUND = "sound"  # the segment of the frames
WINDOW, HOP = 400, 160  # samples of a spectrogram's column, and from one to the next
_BANDS = ("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel")
SHORTEST = 1600  # samples below which a failure is laid on a sound
FLOOR = 80.0  # decibels below the loudest that are drawn as silence


def is_sound(given: Any) -> bool:
    """Whether this is a sound: a pair of samples, an array with one axis, and their rate."""
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], (np.ndarray, Tensor))
        and given[0].ndim == 1
        and isinstance(given[1], (int, np.integer))
    )


def encode_sound(facts: ModelFacts, given: Any) -> Encoded:
    """Encode one sound: its frames are tokens, each with the second at which it begins."""
    name = facts.sound_argument
    if name is None:
        raise UsageError(f"{facts.name} reads no sounds")
    arguments = dict(given) if isinstance(given, Mapping) else _extracted(facts, given)
    values = arguments.get(name)
    if not isinstance(values, Tensor) or len(values) != 1:
        raise UsageError(f"a sound that is encoded already needs {name} of one sound, a tensor")
    values = values.to(facts.device, facts.dtype)
    seconds = _seconds(facts, values)
    tokens = _frames(facts, values, _count_frames(facts, values), seconds)
    drawn = _spectrogram(facts, values, rising=tokens.grids[SOUND][0] > 1)
    return Encoded(tokens, {}, beside={name: values}, pictures={SOUND: drawn})


def _extracted(facts: ModelFacts, given: Any) -> dict[str, Any]:
    """What the feature extractor makes of samples and their rate."""
    if not is_sound(given):
        raise UsageError(
            "this model reads sounds: give a pair (samples, sampling rate), an array with one axis "
            f"and a number, not {_what(given)}"
        )
    samples, rate = np.asarray(given[0]), given[1]
    extractor: Any = facts.feature_extractor
    if hasattr(extractor, "convert_tokens_to_ids"):
        raise UsageError(
            f"{facts.name} reads sounds: it needs a feature extractor, or a processor that has "
            f"one, not {type(extractor).__name__}"
        )
    needed = getattr(extractor, "sampling_rate", rate)
    if rate != needed:
        raise UsageError(f"the sound has {rate} samples a second, and this model reads {needed}")
    if not len(samples) or not np.isfinite(samples).all():
        raise UsageError("a sound has at least one sample, and all of them are finite")
    wide = samples / 32768 if samples.dtype == np.int16 else samples
    return dict(extractor(wide.astype(np.float32), sampling_rate=rate, return_tensors="pt"))


def _what(given: Any) -> str:
    if not isinstance(given, tuple):
        return type(given).__name__
    shapes = [getattr(each, "shape", None) for each in given]
    words = [
        f"an array of shape {tuple(shape)}" if shape else type(each).__name__
        for each, shape in zip(given, shapes, strict=True)
    ]
    return f"({', '.join(words)})"


def _seconds(facts: ModelFacts, values: Tensor) -> float:
    """How long the sound is that the model reads, with what fills it up."""
    extractor: Any = facts.feature_extractor
    rate = getattr(extractor, "sampling_rate", 16000)
    if values.ndim == 2:
        return values.shape[1] / rate
    columns = values.shape[2] if _is_upright(facts, values) else values.shape[1]
    hop = getattr(extractor, "hop_length", HOP) * getattr(extractor, "stride", 1)
    return columns * hop / rate


def _is_upright(facts: ModelFacts, values: Tensor) -> bool:
    """Whether a spectrogram is `[pitch, moment]`, as Whisper's is, not `[moment, pitch]`."""
    inner: Any = getattr(facts.config, "encoder_config", facts.config)
    bands = [getattr(each, name, None) for each in (facts.config, inner) for name in _BANDS]
    across, along = values.shape[1] in bands, values.shape[2] in bands
    return across if across != along else facts.config.model_type == "whisper"


def _count_frames(facts: ModelFacts, values: Tensor) -> int:
    """How many positions the first attention covers."""
    start = {"decoder_input_ids": torch.zeros(1, 1, dtype=torch.long, device=values.device)}
    arguments = {str(facts.sound_argument): values, **(start if facts.has_decoder else {})}
    with (
        fold_calls(facts.model, lambda call: call.weights.shape[-1]) as lengths,
        torch.no_grad(),
    ):
        try:
            facts.model(**arguments)
        except RuntimeError as problem:  # a convolution that is wider than the sound
            if values.ndim == 2 and values.shape[1] < SHORTEST:
                few = f"a sound of {values.shape[1]} samples is too short for {facts.name}"
                raise UsageError(few) from problem
            raise
    return int(lengths[0])


def check_letters(facts: ModelFacts, letters: int, frames: int) -> None:
    """Refuse a model that hears more or fewer letters than it attends over frames."""
    if letters != frames:
        raise UnsupportedModelError(
            f"{facts.name} hears {letters} letters in {frames} frames, so a letter has no frame of "
            "its own"
        )


def _frames(facts: ModelFacts, values: Tensor, count: int, seconds: float) -> Tokens:
    rows, columns = _grid(facts, values, count)
    extra = count - rows * columns
    texts = [f"[{number}]" if number else "[CLS]" for number in range(extra)]
    step = seconds / columns
    bands = [f", band {row}" if rows > 1 else "" for row in range(rows)]
    texts += [f"{column * step:.2f} s{band}" for band in bands for column in range(columns)]
    special = (True,) * extra + (False,) * (rows * columns)
    return Tokens(
        tuple(texts), (None,) * count, special, (SOUND,) * count, grids={SOUND: (rows, columns)}
    )


def _grid(facts: ModelFacts, values: Tensor, count: int) -> Grid:
    """Bands and moments: one band, unless a spectrogram is cut into patches as a picture is."""
    config, size = facts.config, getattr(facts.config, "patch_size", None)
    if values.ndim != 3 or not isinstance(size, int):
        return 1, count
    bands = (values.shape[2] - size) // config.frequency_stride + 1
    moments = (values.shape[1] - size) // config.time_stride + 1
    if bands * moments > count:
        raise UnsupportedModelError(f"{facts.name} attends over fewer frames than it has patches")
    return bands, moments


def _spectrogram(facts: ModelFacts, values: Tensor, *, rising: bool) -> np.ndarray:
    """Ink on paper, `[pitch, moment, colour]`: the highest pitch on top, or below if `rising`.

    Patches of a spectrogram are counted from the lowest pitch, and the first row is on top.
    """
    wide = values[0].detach().float().cpu()
    if wide.ndim == 1:
        window = torch.hann_window(WINDOW)
        padded = torch.nn.functional.pad(wide, (0, max(WINDOW - len(wide), 0)))
        heard = torch.stft(padded, WINDOW, HOP, window=window, return_complex=True).abs()
        table = 20 * heard.clamp_min(1e-10).log10()
        table = table.clamp_min(float(table.max()) - FLOOR)
    else:
        table = wide if _is_upright(facts, values) else wide.T
    low, high = table.min(), table.max()
    ink = 1 - (table - low) / (high - low).clamp_min(1e-12)
    drawn = ink if rising else ink.flip(0)
    shades: np.ndarray = (drawn * 255).round().byte().numpy()
    return np.repeat(shades[:, :, None], 3, axis=2)


def silence(facts: ModelFacts, inputs: Inputs, hidden: Tensor) -> Tensor:
    """The sounds of a batch with silence in hidden frames, `[row, frame]`.

    Silence is zero in samples, and the least value in a spectrogram.
    """
    values = inputs.arguments[inputs.source.argument]
    rows, columns = inputs.tokens[0].grids[SOUND]
    cells = hidden[:, -rows * columns :].view(len(hidden), 1, rows, columns).float()
    if values.ndim == 2:
        cover = torch.nn.functional.interpolate(cells[:, 0], values.shape[1])[:, 0]
        return values.masked_fill(cover.bool().to(values.device), 0)
    is_upright = _is_upright(facts, values)
    shape = values.shape[1:] if is_upright else (values.shape[2], values.shape[1])
    cover = torch.nn.functional.interpolate(cells, tuple(shape))[:, 0].bool().to(values.device)
    least = values.amin(dim=(1, 2), keepdim=True)
    return torch.where(cover if is_upright else cover.transpose(1, 2), least, values)
