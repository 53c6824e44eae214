"""The axes of every tensor, named once. The test run checks them; production code pays nothing.

batch: inputs of equal length · head, query, key: attention · token: what has a score
place, choice: a model's output seen as rows of alternatives · feature: hidden width
"""

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

Attention = Float[Tensor, "batch head query key"]
Visible = Bool[Tensor, "batch #head query key"]
HeadMean = Float[Tensor, "batch query key"]
QueryWeights = Float[Tensor, "batch query"]
TokenScores = Float[Tensor, "batch token"]
BatchScores = Float[Tensor, " batch"]
Logits = Float[Tensor, "batch place choice"]

TokenVector = Float[np.ndarray, " token"]
SiteMap = Float[np.ndarray, "head query key"]
