"""What the survey's one way of making models small and feeding them does not cover.

For each type: `config`, settings that come on top of the generic ones (a nested dict for a nested
configuration); `inputs`, tensors that come on top of the generic ones, `None` to leave one out;
`shape`, other sizes for the generic inputs; `head`, the class to take.
"""

from typing import Any

EXCEPTIONS: dict[str, dict[str, Any]] = {}
