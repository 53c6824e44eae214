"""The verb `train`: attention models that are no transformers, from labelled texts."""
