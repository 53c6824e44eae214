"""Recurrent models written out in numpy, from their definitions, to compare the torch ones with."""

import numpy as np


def numbers(module):
    """The weights of a module by name, as float64 arrays."""
    return {name: each.detach().double().numpy() for name, each in module.named_parameters()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    raised = np.exp(x - x.max())
    return raised / raised.sum()


def lstm(vectors, weights, end):
    """The states of one direction; `end` is the ending of the weights' names."""
    width = weights[f"weight_hh_l0{end}"].shape[1]
    state, cell, states = np.zeros(width), np.zeros(width), []
    for vector in vectors:
        gates = weights[f"weight_ih_l0{end}"] @ vector + weights[f"bias_ih_l0{end}"]
        gates = gates + weights[f"weight_hh_l0{end}"] @ state + weights[f"bias_hh_l0{end}"]
        enter, keep, new, show = np.split(gates, 4)
        cell = sigmoid(keep) * cell + sigmoid(enter) * np.tanh(new)
        state = sigmoid(show) * np.tanh(cell)
        states.append(state)
    return np.array(states)


def gru(vectors, weights, end, state=None, names="_l0"):
    """The states of one direction of a GRU, or of a GRU cell."""
    width = weights[f"weight_hh{names}{end}"].shape[1]
    state, states = np.zeros(width) if state is None else state, []
    for vector in vectors:
        of_input = weights[f"weight_ih{names}{end}"] @ vector + weights[f"bias_ih{names}{end}"]
        of_state = weights[f"weight_hh{names}{end}"] @ state + weights[f"bias_hh{names}{end}"]
        (r, z, n), (hr, hz, hn) = np.split(of_input, 3), np.split(of_state, 3)
        new = np.tanh(n + sigmoid(r + hr) * hn)
        share = sigmoid(z + hz)
        state = (1 - share) * new + share * state
        states.append(state)
    return np.array(states)


def both_ways(network, vectors, weights):
    """The states of both directions side by side, and the last of each."""
    onward = network(vectors, weights, "")
    back = network(vectors[::-1], weights, "_reverse")[::-1]
    return np.concatenate([onward, back], axis=1), np.concatenate([onward[-1], back[0]])


def convolve(vectors, weight, bias):
    """A convolution that keeps the length, and a ReLU."""
    side = weight.shape[2] // 2
    padded = np.pad(vectors, ((side, side), (0, 0)))
    rows = [
        sum(weight[:, :, k] @ padded[place + k] for k in range(weight.shape[2])) + bias
        for place in range(len(vectors))
    ]
    return np.maximum(np.array(rows), 0)


def encoded(name, module, vectors):
    """The states of one text, and what stands for the whole of it."""
    own = numbers(module)
    if name in ("bilstm", "bigru"):
        inner = {key.removeprefix("network."): value for key, value in own.items()}
        return both_ways(lstm if name == "bilstm" else gru, vectors, inner)
    if name == "cnn":
        parts = [
            convolve(vectors, own[f"convolutions.{n}.weight"], own[f"convolutions.{n}.bias"])
            for n in range(len(own) // 2)
        ]
        states = np.concatenate(parts, axis=1)
        return states, states.max(axis=0)
    if name == "average":
        states = np.tanh(vectors @ own["projection.weight"].T + own["projection.bias"])
        return states, states.mean(axis=0)
    return vectors, vectors.mean(axis=0)


def scores(name, module, states, question=None):
    """The score of each state."""
    own = numbers(module)
    if name == "additive":
        inner = states @ own["inner.weight"].T + own["inner.bias"]
        if question is not None:
            inner = inner + own["of_question.weight"] @ question + own["of_question.bias"]
        return np.tanh(inner) @ own["outer.weight"][0]
    if name == "scaled_dot":
        query = own["query.weight"][0] if question is None else question
        return states @ query / np.sqrt(states.shape[1])
    return np.zeros(len(states))
