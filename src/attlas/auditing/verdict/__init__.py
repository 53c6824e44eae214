"""The verdict of an audit: its rules, tests, p-values and sentences."""
