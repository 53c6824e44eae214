"""The verbs `explain`, `explain_to`, `explain_generation`: run a method, record what it gives."""
