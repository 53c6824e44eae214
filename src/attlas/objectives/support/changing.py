"""Changes of keys at some layers of a model that learns."""

from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.teaching.training_tap import KeyChange
from attlas.objectives.support.sites import Chosen, chosen_calls
from attlas.objectives.support.step import TrainingStep
from attlas.results import Site


def change_at(step: TrainingStep, name: str, layer: Chosen, change: KeyChange) -> KeyChange:
    """A change of keys at these layers alone; raises where keys cannot be reached."""
    calls = chosen_calls(step, name, layer)
    if not step.tap.has_keys:
        raise UnsupportedModelError(
            f"{name} changes keys, and {type(step.tap.model).__name__} computes its attention "
            "without keys that can be reached"
        )
    sites = {call.site.name for call in calls}

    def changed(site: Site, keys: Tensor) -> Tensor:
        return change(site, keys) if site.name in sites else keys

    return changed
