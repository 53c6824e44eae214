"""What studies share: the record of a study, and what the study `attattr` returns."""
