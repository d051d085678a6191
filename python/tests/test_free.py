"""free() names who still holds what it was asked to free: ten staged leaks, on CPU tensors."""
import functools
import gc
import sys
import threading

import pytest
import torch

import oomscope

SIZE = 1 << 20  # floats
kept_globally = None
KEPT = []
CACHE = {}


def made():
    return torch.zeros(SIZE)


def held(result):
    """All holders named, as one text."""
    return "; ".join(holder for each in result.remaining for holder in each["holders"])


def test_a_name_nobody_else_holds_is_freed():
    model = torch.nn.Linear(512, 512)
    result = oomscope.free("model")
    assert result.freed == 4 * (512 * 512 + 512) and not result.remaining
    assert locals().get("model") is None


def test_several_names_that_refer_to_each_other():
    model = torch.nn.Linear(512, 512)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 512)).sum().backward()
    optimizer.step()
    result = oomscope.free("model", "optimizer")
    assert result.freed >= 4 * 4 * (512 * 512 + 512) and not result.remaining


def test_a_missing_name_is_an_error_before_anything_is_deleted():
    tensor = made()
    with pytest.raises(NameError, match="nothing_of_this_name"):
        oomscope.free("tensor", "nothing_of_this_name")
    assert tensor.numel() == SIZE


def test_global():
    global kept_globally
    kept_globally = tensor = made()
    result = oomscope.free("tensor")
    assert "test_free.kept_globally" in held(result) and result.remaining[0]["bytes"] == 4 * SIZE
    kept_globally = None


def test_closure():
    def keeper(inner):
        def uses_it():
            return inner.sum()
        return uses_it

    tensor = made()
    CACHE["function"] = keeper(tensor)
    result = oomscope.free("tensor")
    assert "uses_it" in held(result) and "closure" in held(result)
    CACHE.clear()


def fails_with(tensor):
    raise RuntimeError("out of memory")


def test_traceback_of_an_error_that_is_kept():
    tensor = made()
    try:
        fails_with(tensor)
    except RuntimeError as error:
        KEPT.append(error)
    result = oomscope.free("tensor")
    assert "fails_with" in held(result) and "traceback" in held(result)
    KEPT.clear()


def test_stored_traceback_is_cleared_and_named(monkeypatch):
    tensor = made()
    try:
        fails_with(tensor)
    except RuntimeError as error:
        sys.last_value, sys.last_traceback, sys.last_type = error, error.__traceback__, type(error)
    result = oomscope.free("tensor")
    assert result.cleared == [("the stored traceback", 4 * SIZE)] and not result.remaining
    assert not hasattr(sys, "last_value")


def test_many_tensors_of_one_list_each_have_their_holder():
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(20)))
    KEPT.append(list(model.parameters()))
    result = oomscope.free("model")
    assert len(result.remaining) == 40 and all("test_free.KEPT[0][" in each["holders"][0] for each in result.remaining)
    KEPT.clear()


def test_a_local_of_a_function_that_runs():
    def outer():
        kept = {"features": made()}
        inner = kept["features"]
        return fails_to_free(inner), len(kept)

    def fails_to_free(tensor):
        return oomscope.free("tensor")

    result, _ = outer()
    assert "inner, a local of outer()" in held(result)
    assert "kept, a local of outer(): ['features']" in held(result)


def test_list():
    tensor = made()
    KEPT.extend([1, tensor])
    result = oomscope.free("tensor")
    assert "test_free.KEPT[1]" in held(result)
    KEPT.clear()


def test_grad():
    global kept_globally
    kept_globally = torch.nn.Parameter(made())
    kept_globally.sum().backward()
    gradient = kept_globally.grad
    result = oomscope.free("gradient")
    assert "test_free.kept_globally.grad" in held(result)
    kept_globally = None


def test_hook():
    global kept_globally
    kept_globally = torch.nn.Linear(2, 2)
    tensor = made()
    kept_globally.register_forward_hook(functools.partial(lambda big, *_: None, tensor))
    result = oomscope.free("tensor")
    assert "partial" in held(result) and "kept_globally" in held(result) and "_forward_hooks" in held(result)
    kept_globally = None


@functools.lru_cache(maxsize=4)
def remembered(size):
    return torch.zeros(size)


def test_cache():
    tensor = remembered(SIZE)
    result = oomscope.free("tensor")
    assert "the cache of remembered" in held(result)
    remembered.cache_clear()
    tensor = made()
    CACHE["features"] = tensor
    result = oomscope.free("tensor")
    assert "test_free.CACHE['features']" in held(result)
    CACHE.clear()


class Node:
    pass


def test_cycle_is_collected_and_named():
    gc.disable()
    node = Node()
    node.itself, node.tensor = node, made()
    result = oomscope.free("node")
    gc.enable()
    (what, count), = result.cleared
    assert count == 4 * SIZE and "Node" in what and not result.remaining


def test_out_of_a_notebook_is_cleared_and_named():
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()
    shell.run_cell("import torch, oomscope", store_history=True)
    shell.run_cell(f"tensor = torch.zeros({SIZE}); tensor", store_history=True)
    result = shell.run_cell("freed = oomscope.free('tensor')", store_history=True)
    assert result.success, result.error_in_exec
    freed = shell.user_ns["freed"]
    assert freed.cleared == [("the notebook's Out and _", 4 * SIZE)] and not freed.remaining
    InteractiveShell.clear_instance()


def test_thread():
    stop = threading.Event()

    def works_on(big):
        stop.wait(30)

    tensor = made()
    thread = threading.Thread(target=works_on, args=(tensor,), name="loader")
    thread.start()
    result = oomscope.free("tensor")
    stop.set()
    thread.join()
    assert "thread 'loader'" in held(result) and "works_on" in held(result)


@pytest.mark.parametrize("how,holder", [
    (lambda model: model.state_dict(), "KEPT[0]['weight']"), (lambda model: model.weight.detach(), "KEPT[0]"),
    (lambda model: model.weight[5:], "KEPT[0]"), (lambda model: [model.weight.view(-1)], "KEPT[0][0]"),
    (lambda model: model(torch.ones(1, 64)).sum(), "KEPT[0] < the graph of a tensor")])
def test_memory_that_another_object_shares_is_not_freed(how, holder):
    model = torch.nn.Linear(64, 64, bias=False)
    KEPT.append(how(model))
    result = oomscope.free("model")
    assert result.freed == 0 and [each["bytes"] for each in result.remaining] == [4 * 64 * 64]
    assert f"test_free.{holder}" in held(result)
    KEPT.clear()


def test_a_name_given_twice_is_deleted_once():
    tensor = made()
    assert tensor.numel() == SIZE
    assert oomscope.free("tensor", "tensor").freed == 4 * SIZE


def test_views_of_one_storage_count_once_and_the_report_adds_up():
    base = made()
    KEPT.extend([base[:10], base[10:]])
    views = list(KEPT)
    result = oomscope.free("views")
    assert sum(each["bytes"] for each in result.remaining) == 4 * SIZE
    assert "4.00 MiB" in str(result)
    KEPT.clear()
