"""What methods share: the registry, rows of attention maps, coalitions, flows, relevance."""
