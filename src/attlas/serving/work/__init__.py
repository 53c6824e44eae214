"""What a request asks of a model: each file answers one or two kinds of request."""
