"""What studies share: how a study is registered, run and kept, and how claims are decided."""
