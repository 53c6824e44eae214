"""Mathematics that knows no model: statistics, rankings, divergences, intervals, null spaces."""
