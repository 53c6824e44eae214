"""evaluation_mode: within the block a model stands still; afterwards it is as it was."""

import gc
import threading
import weakref

import pytest
import torch
from torch import nn
from transformers import HrmTextConfig, HrmTextModel

from attlas.errors import ModelError
from attlas.models.facts.evaluation_mode import evaluation_mode, every_module
from attlas.models.loading.planned_attention import planned_attention, unplanned_attention


def half_frozen():
    """A model in training mode, with one block in evaluation mode and one parameter frozen."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Linear(2, 2))
    model.train()
    model[1].eval()
    model[0].bias.requires_grad_(False)
    return model


def state(model):
    modes = [module.training for module in model.modules()]
    return modes, [parameter.requires_grad for parameter in model.parameters()]


def test_everything_stands_still_within_and_is_put_back():
    model = half_frozen()
    before = state(model)
    with evaluation_mode(model):
        assert state(model) == ([False] * 4, [False] * 4)
    assert state(model) == before == ([True, True, False, True], [True, False, True, True])


def test_everything_is_put_back_after_an_error():
    model = half_frozen()
    before = state(model)
    with pytest.raises(RuntimeError, match="the head fell off"), evaluation_mode(model):
        raise RuntimeError("the head fell off")
    assert state(model) == before


def test_everything_is_put_back_where_an_interrupt_left_vmap_open():
    model, levels = half_frozen(), torch._C._functorch
    before = state(model)
    try:
        with evaluation_mode(model):
            levels._vmap_increment_nesting(2, "error")
    finally:
        levels._vmap_decrement_nesting()
    assert state(model) == before
    assert not levels.get_inplace_requires_grad_allowed()


def in_another_thread(work):
    found = []

    def run():
        try:
            found.append(work())
        except Exception as problem:
            found.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_another_thread_that_would_train_is_refused_and_one_that_asks_is_not():
    model, given = half_frozen(), torch.ones(1, 2)

    def ask():
        with torch.no_grad():
            return model(given)

    with evaluation_mode(model):
        assert torch.equal(in_another_thread(ask), model(given))
        problem = in_another_thread(lambda: model(given))
        assert isinstance(problem, ModelError) and "subject.held()" in str(problem)
    assert in_another_thread(lambda: model(given)).requires_grad
    model.eval()
    with evaluation_mode(model):
        assert torch.equal(in_another_thread(lambda: model(given)), ask())


def test_an_inner_block_leaves_the_outer_one_alone():
    model = half_frozen()
    before = state(model)
    with evaluation_mode(model):
        with evaluation_mode(model):
            pass
        assert state(model) == ([False] * 4, [False] * 4)
    assert state(model) == before


def test_another_thread_waits():
    model, order = half_frozen(), []

    def enter():
        with evaluation_mode(model):
            order.append("second")

    other = threading.Thread(target=enter)
    with evaluation_mode(model):
        other.start()
        other.join(0.2)
        order.append("first")
    other.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize("wanted", [True, False])
def test_no_attention_is_planned_within_and_the_setting_is_put_back(wanted):
    was = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(wanted)
    try:
        with evaluation_mode(half_frozen()):
            with evaluation_mode(half_frozen()):
                assert not torch.backends.cuda.cudnn_sdp_enabled()
            assert not torch.backends.cuda.cudnn_sdp_enabled()
        assert torch.backends.cuda.cudnn_sdp_enabled() == wanted
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was)


def test_blocks_that_end_in_another_order_put_it_back_too():
    first, second = unplanned_attention(), unplanned_attention()
    before = torch.backends.cuda.cudnn_sdp_enabled()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    second.__exit__(None, None, None)
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_gradients_pass_all_cycles_of_a_model_that_cuts_them():
    """HRM runs most cycles without gradients; a central difference knows nothing of that."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 16, "intermediate_size": 16, "head_dim": 8}
    shape = {"num_attention_heads": 2, "num_layers_per_stack": 1, "L_cycles": 3, "H_cycles": 2}
    model = HrmTextModel(HrmTextConfig(**sizes, **shape, prefix_lm=False)).double()
    vectors, way = torch.randn(2, 1, 4, 16, dtype=torch.float64)
    cut = list(model.L_bp_cycles_padded)

    def output(given):
        return model(inputs_embeds=given, use_cache=False).last_hidden_state[0, -1, 0]

    with evaluation_mode(model):
        asked = vectors.clone().requires_grad_()
        (slope,) = torch.autograd.grad(output(asked), asked)
        with torch.no_grad():
            rise = output(vectors + 1e-3 * way) - output(vectors - 1e-3 * way)
    # Its norms compute in single precision.
    assert float((slope * way).sum()) == pytest.approx(float(rise) / 2e-3, rel=5e-3)
    assert model.L_bp_cycles_padded == cut == [1, 2]


def test_modules_that_were_exchanged_are_found():
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    assert every_module(model) == every_module(model)
    assert set(every_module(model)) == set(model.modules())
    model[1][1] = nn.Linear(2, 3)
    assert set(every_module(model)) == set(model.modules())
    model[1].append(nn.Tanh())
    assert set(every_module(model)) == set(model.modules())
    del model[0]
    assert set(every_module(model)) == set(model.modules())
    known = weakref.ref(model)
    del model
    gc.collect()
    assert known() is None


def test_attention_is_planned_for_again_within_a_block(monkeypatch):
    settings = [True]
    monkeypatch.setattr(torch.backends.cuda, "cudnn_sdp_enabled", lambda: settings[-1])
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", settings.append)
    with unplanned_attention():
        assert settings[-1] is False
        with planned_attention():
            assert settings[-1] is True
        assert settings[-1] is False
    assert settings[-1] is True
    settings.append(False)  # the user's own wish
    with unplanned_attention(), planned_attention():
        assert settings[-1] is False
    assert settings[-1] is False
