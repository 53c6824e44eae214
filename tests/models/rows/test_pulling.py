"""What a layer of a long input takes beside the model's own work: operators, and looks."""

import subjects
import tiny
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import attlas
from attlas.methods.support import top_down
from attlas.models.encoding.request import Request
from attlas.models.rows import handing


class Operators(TorchDispatchMode):
    """The names of all operators that a device would be given."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if not operator.is_view:
            self.names.append(operator.overloadpacket.__name__)
        return operator(*args, **(kwargs or {}))


def test_a_row_in_two_parts_goes_through_a_layer_by_six_operators():
    subject = subjects.small("Llama", "ForCausalLM", **tiny.LLAMA_SHAPE)
    halved = attlas.Subject(subject.model.to(torch.bfloat16), subject.tokenizer)
    (question,) = halved.ask([subjects.LONG], Request())
    call = handing.hand_over(question, question.subject.sites).calls[-1].with_graph()
    row = torch.rand(1, call.queries)
    with Operators() as seen:
        call.pull_fused(row)
    (backward,) = (name for name in seen.names if name.endswith("backward"))
    assert seen.names == ["zeros_like", "copy_", "sub", backward, "sum", "div"]


def test_a_device_is_waited_for_once_and_not_at_each_layer(monkeypatch):
    own, looks = top_down.support, []
    monkeypatch.setattr(top_down, "support", lambda row: looks.append(row) or own(row))
    monkeypatch.setattr(handing, "LONG", 0)
    subject = subjects.subject("causal lm")
    assert len(subject.sites) > 1
    for method, options in (("generic_relevance", {}), ("raw_attention", {"layer": None})):
        attlas.explain(subject, subjects.LONG, method, maps=False, **options)
        assert len(looks) == 1
        looks.clear()
    with Operators() as seen:
        attlas.explain(subject, subjects.LONG, "generic_relevance", maps=False)
    assert "nonzero" not in seen.names
