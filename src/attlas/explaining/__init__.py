"""The verbs `explain`, `explain_to` and `explain_generation`: run a method and record the result."""
