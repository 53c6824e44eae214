"""The command line: each command parses its options, calls a verb and shows the result."""
