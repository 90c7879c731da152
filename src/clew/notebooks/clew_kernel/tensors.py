"""Tensors of torch as bytes and back: those that share memory share it again.

torch's own pickles copy the memory of each tensor, and differ between two equal tensors.
"""

from __future__ import annotations

import sys
from typing import Any

from clew_kernel.unsavable import Unsavable


class Memory:
    """The memory of tensors, on their device."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __reduce__(self) -> tuple[Any, ...]:
        torch = sys.modules["torch"]
        on_host = torch.empty(0, dtype=torch.uint8).set_(self._storage.cpu())
        return _load_memory, (on_host.numpy(), str(self._storage.device))


def reduce_tensor(tensor: Any, memories: dict[Any, Memory]) -> tuple[Any, ...]:
    """How pickle makes this tensor again. `memories` are those of the same pickle."""
    torch = sys.modules["torch"]
    kind = type(tensor)
    if kind not in (torch.Tensor, torch.nn.Parameter):
        raise Unsavable(f"it has a tensor of the type {kind.__qualname__}")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise Unsavable("it has a tensor that is sparse, quantized or without memory")
    if tensor.is_conj() or tensor.is_neg():
        raise Unsavable("it has a view of a tensor that computes its values")
    if tensor.grad_fn is not None:
        raise Unsavable("it has a tensor from which gradients can be computed: use .detach()")
    if tensor._backward_hooks:
        raise Unsavable("it has a tensor with hooks")
    storage = tensor.untyped_storage()
    address = storage.data_ptr() or -id(tensor)  # an empty one has none
    memory = memories.setdefault((storage.device, address), Memory(storage))
    place = (tensor.dtype, tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
    state = (tensor.grad, vars(tensor))
    return _make_tensor, (kind, memory, *place, tensor.requires_grad), state, None, None, _fill


def _load_memory(saved: Any, device: str) -> Any:
    torch = sys.modules["torch"]
    return torch.from_numpy(saved.copy()).to(device).untyped_storage()


def _make_tensor(
    kind: Any, storage: Any, dtype: Any, offset: int, size: Any, stride: Any, gradient: bool
) -> Any:
    torch = sys.modules["torch"]
    tensor = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, offset, size, stride)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=gradient)
    return tensor.requires_grad_(gradient)


def _fill(tensor: Any, state: Any) -> None:
    gradient, attributes = state
    tensor.grad = gradient
    vars(tensor).update(attributes)
