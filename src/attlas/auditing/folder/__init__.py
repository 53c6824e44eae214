"""The folder an audit works in."""
