"""The verbs `explain` and `explain_generation`: run a method and record what it gives."""
