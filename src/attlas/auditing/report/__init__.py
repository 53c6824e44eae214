"""The report of an audit, from the figures of all texts."""
