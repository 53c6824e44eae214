"""The plain model inside one that was compiled, adapted or made parallel; adapters from files."""

from pathlib import Path
from typing import Any

from torch import nn

from attlas.errors import ModelError, UnsupportedModelError

ADAPTER_WEIGHTS = "adapter_model.safetensors"


def unwrap(model: Any) -> nn.Module:
    """The plain model inside a compiled or adapted one; raises for anything that is no model."""
    if not isinstance(model, nn.Module):
        raise UnsupportedModelError(
            f"a model is a torch.nn.Module of transformers, not {type(model).__name__}"
        )
    if hasattr(model, "_orig_mod"):  # torch.compile(model)
        return unwrap(model._orig_mod)
    if getattr(model, "_compiled_call_impl", None) is not None:  # model.compile()
        raise UnsupportedModelError(
            f"{type(model).__name__} was compiled in place: hand over the model before compile()"
        )
    quantised = [m for m in model.modules() if ".ao.nn.quantized" in type(m).__module__]
    if quantised:
        raise UnsupportedModelError(
            f"{type(model).__name__} was quantised by torch.ao ({type(quantised[0]).__name__}), "
            "which lets no gradient through: hand over the model before it was quantised"
        )
    if hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
        return _without_adapter_shell(model)
    if type(model).__name__ in ("DataParallel", "DistributedDataParallel"):
        return unwrap(model.module)
    return model


def _without_adapter_shell(model: Any) -> nn.Module:
    """The base model of a PEFT model, adapters inside its layers included."""
    for adapter in model.peft_config.values():
        if getattr(adapter, "is_prompt_learning", False):
            raise UnsupportedModelError(
                f"the adapter {adapter.peft_type} adds tokens of its own and cannot be opened; "
                "adapters inside the layers (such as LoRA) can"
            )
    base: nn.Module = model.get_base_model()
    return base


def read_adapter(place: str) -> tuple[Any, dict[str, list[int]]]:
    """The settings of a PEFT adapter, and the shapes of its weights by their names."""
    from peft import PeftConfig
    from safetensors import safe_open

    with safe_open(Path(place) / ADAPTER_WEIGHTS, "pt") as file:
        names = list(file.keys())
        shapes = {each: list(file.get_slice(each).get_shape()) for each in names}
    return PeftConfig.from_pretrained(place), shapes


def add_adapter(model: nn.Module, place: str) -> Any:
    """A model with a PEFT adapter around its layers."""
    from peft import PeftModel

    return PeftModel.from_pretrained(model, place)


def check_adapter(adapted: Any, names: set[str], name: str) -> None:
    """Refuse weights that are missing, which PEFT draws at random, and those that go nowhere."""
    from peft import get_peft_model_state_dict

    wanted = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
    missing = sorted(wanted - names)
    unused = sorted(names - wanted - set(adapted.state_dict()))
    if missing or unused:
        what = f"lacks {missing[0]}" if missing else f"has {unused[0]}, which no layer takes"
        raise ModelError(f"{name} is a damaged PEFT adapter: it {what}")
