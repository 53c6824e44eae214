"""Names of operations, by what they do to the terms of a tensor."""

SUMS = {"add", "add_", "__add__", "__radd__", "__iadd__"}
TAKING_AWAY = {"sub", "sub_", "__sub__", "__isub__"}
TAKEN_AWAY_FROM = {"rsub", "__rsub__"}
ADDING = SUMS | TAKING_AWAY | TAKEN_AWAY_FROM
TIMES = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
OVER = {"div", "div_", "__truediv__", "__div__", "__itruediv__", "divide", "true_divide"}
PRODUCTS = TIMES | OVER
MATRICES = {"matmul", "__matmul__", "bmm"}
MIXING = MATRICES | {"einsum"}
# Activations that are zero at zero, so that each output is its input times a factor.
ACTIVATIONS = {
    *("gelu", "silu", "relu", "tanh", "mish", "leaky_relu", "elu", "selu", "celu", "relu6"),
    *("clamp", "clip", "hardtanh"),
}
GATES = {"erf"}  # factors of an activation that is written out
# Operations that put numbers elsewhere and change none, and such that change their precision.
MOVING = {
    *("view", "reshape", "transpose", "permute", "contiguous", "flatten", "unflatten", "clone"),
    *("broadcast_to", "unsqueeze", "squeeze", "expand", "expand_as", "view_as", "repeat"),
    *("repeat_interleave", "__getitem__", "select", "narrow", "split", "chunk", "unbind"),
    *("index_select", "movedim", "swapaxes", "swapdims", "ravel", "tile", "t", "detach", "flip"),
}
CASTING = {"to", "type", "type_as", "float", "double", "half", "bfloat16"}
# Operations that commute with a sum: these, and such that take several numbers together.
LINEAR = {
    *MOVING,
    *CASTING,
    *("cat", "concat", "concatenate", "stack", "roll", "neg", "__neg__", "sum", "mean"),
    *("diagonal", "unfold", "pad", "gather"),
}
# Operations that look at the shape of a tensor, not at its numbers.
SHAPED_ALIKE = {
    *("zeros_like", "ones_like", "empty_like", "full_like"),
    *("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"),
}
LIKE_ANOTHER = {"expand_as", "view_as", "reshape_as", "type_as", "to"}  # reads the first only
GROUPED = {"grouped_mm", "_grouped_mm", "grouped_mm_fallback"}  # one matrix for each group of rows
OF_ONE = {"layer_norm", "rms_norm"} | ACTIVATIONS | GROUPED
PUTTING = {"index_add", "index_add_", "__setitem__"}  # operations that put one tensor into another
SEVERAL = {"split", "chunk", "unbind"}  # operations that return several tensors
UNCHANGING = {"dropout", "dropout_", "requires_grad_"}  # the model is in evaluation mode
