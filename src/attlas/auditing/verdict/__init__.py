"""The verdict of an audit: rules, tests, words."""
