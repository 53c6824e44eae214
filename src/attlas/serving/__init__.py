"""The live laboratory: models behind a page and its JSON, with long work as jobs."""
