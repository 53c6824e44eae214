"""What transformers says where something cannot be loaded, in one line."""

from attlas.errors import first_line, in_short


def lacking(problem: Exception) -> str:
    """What a processor lacks; transformers lists the ways that it tried instead."""
    if "instantiate the backend tokenizer" in str(problem):
        return "its tokenizer.json is missing or damaged"
    return first_line(problem) if isinstance(problem, LookupError) else announced(problem)


def announced(problem: Exception) -> str:
    """The first line of an error, with the next if that only announces it."""
    found = [line.strip() for line in str(problem).splitlines() if line.strip()]
    first, *others = found or [repr(problem)]
    return in_short(f"{first} {others[0]}" if first.endswith(":") and others else first, 300)
