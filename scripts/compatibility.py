"""Survey: which types of models in the installed transformers does Attlas open, and rightly?

Every type in seven of transformers' tables of heads is built small and at random, run on a small
input, and opened. What the tap saw is held against the attention that transformers itself returns
on its eager implementation, and what the opened model computes against what eager computes.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(Path(__file__).parent))
from compatibility_exceptions import EXCEPTIONS
from compatibility_models import build, feed

from attlas.errors import AttlasError
from attlas.models import edits
from attlas.models import transformers_internals as internals
from attlas.models.anatomy import anatomy
from attlas.models.tap import Seen, tap
