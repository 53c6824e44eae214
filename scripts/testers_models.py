"""The models of a transformers checkout: what its own tests build, and the inputs they give.

Every `tests/models/<family>/test_modeling_*.py` has a tester that makes a small configuration and
inputs for it, and lists the classes to try. Nothing of the checkout is run but these.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import SkipTest
from unittest.mock import MagicMock

import torch
import transformers
from compatibility_models import SPREAD, widen

MOST_PARAMETERS = 20_000_000
MOST_MISSING = 20
# Imported once, before there is a process for each family.
SHARED = ("tests.test_pipeline_mixin", "tests.generation.test_utils", "tests.causal_lm_tester")


def enter(checkout: Path) -> None:
    """Make the tests of a checkout importable."""
    sys.path.insert(0, str(checkout.resolve()))
    sys.modules.setdefault("parameterized", _no_parameters())
    # The tests would load the checkout's own transformers; the installed one is surveyed.
    transformers.utils.direct_transformers_import = lambda *_: transformers
    for name in SHARED:
        if (checkout / f"{name.replace('.', '/')}.py").exists():
            _import(name)


def _import(name: str) -> ModuleType:
    """Import a module of the tests; what the installed transformers lacks is a stand-in.

    The tests of another version name functions that moved, for checks that are not run here.
    """
    for _ in range(MOST_MISSING):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("tests."):
                raise
            sys.modules[error.name] = MagicMock(__spec__=ModuleSpec(error.name, None))
        except ImportError as error:
            missing = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            if missing is None:
                raise
            setattr(sys.modules[missing[2]], missing[1], MagicMock())
    raise ImportError(f"{name} needs more than {MOST_MISSING} names that are not there")


def _no_parameters() -> ModuleType:
    """Stands for the library that gives tests their parameters: here no test is ever run."""
    module: Any = ModuleType("parameterized")

    def decorate(*_: Any, **__: Any) -> Any:
        return lambda test: test

    decorate.expand = decorate  # type: ignore[attr-defined]
    module.parameterized = module.parameterized_class = decorate
    module.param = lambda *given, **named: (given, named)
    return module


def families(checkout: Path) -> list[str]:
    """The families with a tester, in the order of the alphabet."""
    found = (checkout / "tests" / "models").glob("*/test_modeling_*.py")
    return sorted({path.parent.name for path in found})


def classes(checkout: Path, family: str) -> dict[str, Any]:
    """Each class of a family by name, with the test case that knows how to build it."""
    found: dict[str, Any] = {}
    for path in sorted((checkout / "tests" / "models" / family).glob("test_modeling_*.py")):
        module = _import(f"tests.models.{family}.{path.stem}")
        for case_class in _case_classes(module):
            case = case_class()
            try:
                case.setUp()
            except SkipTest:
                continue
            for model_class in getattr(case, "all_model_classes", None) or ():
                if isinstance(model_class, type):
                    found.setdefault(model_class.__name__, (case, model_class))
    return found


def _case_classes(module: ModuleType) -> Iterator[Any]:
    for each in list(vars(module).values()):
        own = isinstance(each, type) and each.__module__ == module.__name__
        if own and hasattr(each, "all_model_classes") and hasattr(each, "setUp"):
            yield each


def built(case: Any, model_class: Any) -> tuple[Any, dict[str, Any]]:
    """A model of a class with weights of a wide spread, and the inputs that its tester gives it."""
    torch.manual_seed(0)
    common = sys.modules.get("tests.test_modeling_common")
    if common is not None:
        common.global_rng.seed(0)  # the tests draw token ids from it
    tester = case.model_tester
    if hasattr(tester, "prepare_config_and_inputs_for_model_class"):
        config, inputs = tester.prepare_config_and_inputs_for_model_class(model_class)
    else:
        config, inputs = tester.prepare_config_and_inputs_for_common()
    given = case._prepare_for_class(inputs, model_class)
    with torch.device("meta"):
        size = sum(each.numel() for each in model_class(deepcopy(config)).parameters())
    if size > MOST_PARAMETERS:
        raise ValueError(f"{size} parameters: not small")
    model = model_class(deepcopy(config))
    widen(model, SPREAD)
    return model.eval(), {name: value for name, value in given.items() if value is not None}
