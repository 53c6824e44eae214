"""The engine: where the work of a verb is done, in this process or by workers on Ray."""

from attlas.engine.engine import LOCAL, Engine, engine_of

__all__ = ["LOCAL", "Engine", "engine_of"]
