"""What all trials share: their record, the scope, the answers of a model, figures of texts."""
