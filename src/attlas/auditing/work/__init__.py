"""The work of an audit, one group of texts at a time."""
