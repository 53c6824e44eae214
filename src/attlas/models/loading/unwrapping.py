"""The plain model inside one that was compiled, adapted or made parallel."""

from typing import Any

from torch import nn

from attlas.errors import UnsupportedModelError


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
