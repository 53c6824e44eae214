"""Marks that people made: a measure that needs them says so."""

import numpy as np
import pytest

from attlas.errors import UsageError
from attlas.measures import NOTHING, Case
from attlas.measures.token_f1 import token_f1


def test_marks_must_be_there():
    with pytest.raises(UsageError, match="the text has no marks"):
        token_f1(Case(np.ones(3), 0), NOTHING, NOTHING)
