"""Arrays of numpy inside captured code: each is a tensor of the graph, or an array whose content is known while capturing.

Views are torch's views of that tensor, so that what writes to one is seen by all. What computes is a node that calls numpy: torch adds in another order, rounds sines otherwise and
does not warn. ``ndarray`` and ``number`` are what capture takes in the place of numpy's classes; they are never made. Loaded where numpy is.
"""

from __future__ import annotations

import functools
import operator
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .answers import give_up

# --- answered by capture itself (numpy_arrays.cc) ---


def array_of(tensor: Any) -> Any:
    """What shares its memory with the tensor, as Tensor.numpy() gives it."""


def number_of(tensor: Any) -> Any:
    """A number of numpy's whose value is that of a tensor without dimensions."""


def tensor_of(array: Any) -> Any:
    """The tensor that has the array's memory."""


def is_known(value: Any) -> bool:
    """No array in it depends on what the graph computes."""
    return False


def must_be_one_graph() -> bool:
    """With fullgraph=True, what warns is in the graph, silently."""
    return False


def call_numpy(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Now where everything is known, else as a node."""


def view_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensor: Any) -> Any:
    """The array over a view that torch made, where numpy makes the same one."""


def write_known(function: Any, args: tuple[Any, ...]) -> bool:
    """Writes to an array whose content is known. False: it is not, or what is written is not."""
    return False


# --- interpreted ---


class ndarray:
    __module__ = "numpy"
    __hash__ = None  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        return call_numpy(_fact, (self, "shape"), {}) if is_known(self) else tuple(tensor_of(self).shape)

    @property
    def ndim(self) -> Any:
        return call_numpy(_fact, (self, "ndim"), {}) if is_known(self) else tensor_of(self).ndim

    @property
    def size(self) -> Any:
        return call_numpy(_fact, (self, "size"), {}) if is_known(self) else tensor_of(self).numel()

    @property
    def dtype(self) -> Any:
        return call_numpy(_fact, (self, "dtype"), {})

    @property
    def itemsize(self) -> Any:
        return call_numpy(_fact, (self, "itemsize"), {})

    @property
    def nbytes(self) -> Any:
        return self.size * self.itemsize

    @property
    def strides(self) -> Any:
        return call_numpy(_fact, (self, "strides"), {})

    @property
    def T(self) -> Any:
        return transpose(self)

    @property
    def real(self) -> Any:
        if self.dtype.kind != "c":
            return self
        return self._part("real", None if is_known(self) else tensor_of(self).real)

    @property
    def imag(self) -> Any:
        if self.dtype.kind != "c":
            give_up("the imaginary part of real numbers is asked for")
        return self._part("imag", None if is_known(self) else tensor_of(self).imag)

    def _part(self, name: str, part: Any) -> Any:
        return call_numpy(_fact, (self, name), {}) if part is None else view_of(_fact, (self, name), {}, part)

    def __getattr__(self, name: str) -> Any:
        kind: Any = type(self)  # as the program sees it
        if kind is np.ndarray and not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        give_up(f"the attribute {name} of a numpy array is read")

    def __setattr__(self, name: str, value: Any) -> None:
        give_up(f"the attribute {name} of a numpy array is set")

    def __delattr__(self, name: str) -> None:
        give_up(f"the attribute {name} of a numpy array is deleted")

    def __len__(self) -> Any:
        if self.ndim == 0:
            give_up("len() of a numpy array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for i in range(len(self)):
            yield self[i]

    def __getitem__(self, key: Any) -> Any:
        if is_known(self) and is_known(key):
            return call_numpy(operator.getitem, (self, key), {})
        parts = key if isinstance(key, tuple) else (key,)
        if not _is_basic(parts):
            return call_numpy(operator.getitem, (self, key), {})
        found = tensor_of(self)[key]
        count = 0
        for part in parts:
            if part is not None and part is not ... and not isinstance(part, slice):
                count += 1
        if count == self.ndim and len(parts) == count:
            return number_of(found.clone())
        return view_of(operator.getitem, (self, key), {}, found)

    def __setitem__(self, key: Any, value: Any) -> None:
        if write_known(operator.setitem, (self, key, value)):
            return
        parts = key if isinstance(key, tuple) else (key,)
        if _is_basic(parts):
            if isinstance(value, ndarray) and not isinstance(value, number) and value.dtype == self.dtype:
                tensor_of(self)[key] = tensor_of(value)
                return
            if isinstance(value, (int, float)) and self.dtype.kind == "f":
                tensor_of(self)[key] = value
                return
        tensor_of(self).copy_(tensor_of(call_numpy(written, (operator.setitem, self, key, value), {})))

    def __contains__(self, item: Any) -> Any:
        return give_up("`in` asks a numpy array")

    def __bool__(self) -> Any:
        return call_numpy(bool, (self,), {}) if is_known(self) else bool(tensor_of(self))

    def __float__(self) -> Any:
        return call_numpy(float, (self,), {}) if is_known(self) else float(_only(self).item())

    def __int__(self) -> Any:
        return call_numpy(int, (self,), {}) if is_known(self) else int(_only(self).item())

    def __index__(self) -> Any:
        if not is_known(self) and (self.dtype.kind not in "iu" or self.ndim):
            give_up("a numpy array is used as an index")
        return call_numpy(operator.index, (self,), {}) if is_known(self) else _only(self).item()

    def item(self, *args: Any) -> Any:
        if is_known(self):
            return call_numpy(np.ndarray.item, (self, *args), {})
        return _only(self[args] if args else self).item()

    def tolist(self) -> Any:
        return call_numpy(np.ndarray.tolist, (self,), {}) if is_known(self) else tensor_of(self).tolist()

    def __repr__(self) -> Any:
        return give_up("the text of a numpy array is asked for")

    __str__ = __repr__

    def __format__(self, form: str) -> Any:
        return give_up("the text of a numpy array is asked for")

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        if is_known(self) or kwargs:
            return call_numpy(np.ndarray.reshape, (self, *shape), kwargs)
        wanted = shape[0] if len(shape) == 1 else shape
        return view_of(np.ndarray.reshape, (self, *shape), {}, tensor_of(self).reshape(wanted))

    def ravel(self, *args: Any, **kwargs: Any) -> Any:
        if is_known(self) or args or kwargs:
            return call_numpy(np.ndarray.ravel, (self, *args), kwargs)
        return view_of(np.ndarray.ravel, (self,), {}, tensor_of(self).reshape(-1))

    def transpose(self, *axes: Any) -> Any:
        if is_known(self):
            return call_numpy(np.ndarray.transpose, (self, *axes), {})
        return transpose(self, axes[0] if len(axes) == 1 else axes if axes else None)

    def swapaxes(self, first: int, second: int) -> Any:
        return swapaxes(self, first, second)

    def squeeze(self, axis: Any = None) -> Any:
        return squeeze(self, axis)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and "copy" in kwargs and not kwargs["copy"] and len(kwargs) == 1 and self.dtype == np.dtype(dtype):
            return self
        return call_numpy(np.ndarray.astype, (self, dtype, *args), kwargs)

    def fill(self, value: Any) -> None:
        self[...] = value

    def sort(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            give_up("a numpy array is sorted in its place with keyword arguments")
        if not write_known(np.ndarray.sort, (self, *args)):
            tensor_of(self).copy_(tensor_of(call_numpy(written, (np.ndarray.sort, self, *args), {})))


class number(ndarray):
    """Of numpy.generic: its value is in the graph."""

    __module__ = "numpy"

    def __hash__(self) -> Any:  # type: ignore[override]
        return give_up("the hash of a numpy number that the graph computes")

    def __setitem__(self, key: Any, value: Any) -> None:
        give_up("an item of a numpy number is written to")

    def __iter__(self) -> Any:
        return give_up("a numpy number is iterated over")


def _only(array: Any) -> Any:
    if array.size != 1:
        give_up("a numpy array of several items is asked for one number")
    return tensor_of(array)


def _is_basic(parts: tuple[Any, ...]) -> bool:
    """Integers, slices that go forward, None and ...: the result is a view."""
    for part in parts:
        if part is None or part is ...:
            continue
        if isinstance(part, slice):
            if part.step is not None and part.step < 0:
                return False
        elif isinstance(part, bool) or not isinstance(part, (int, np.integer)) or isinstance(part, ndarray):
            return False
    return True


def transpose(a: Any, axes: Any = None) -> Any:
    if is_known(a):
        return call_numpy(np.transpose, (a, axes), {})
    order = tuple(range(a.ndim))[::-1] if axes is None else tuple(axes)
    return view_of(np.transpose, (a, order), {}, tensor_of(a).permute(order))


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    if is_known(a):
        return call_numpy(np.swapaxes, (a, axis1, axis2), {})
    return view_of(np.swapaxes, (a, axis1, axis2), {}, tensor_of(a).swapaxes(axis1, axis2))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    if is_known(a):
        return call_numpy(np.moveaxis, (a, source, destination), {})
    return view_of(np.moveaxis, (a, source, destination), {}, tensor_of(a).movedim(source, destination))


def squeeze(a: Any, axis: Any = None) -> Any:
    if is_known(a):
        return call_numpy(np.squeeze, (a, axis), {})
    return view_of(np.squeeze, (a, axis), {}, tensor_of(a).squeeze() if axis is None else tensor_of(a).squeeze(axis))


def expand_dims(a: Any, axis: Any) -> Any:
    if is_known(a) or not isinstance(axis, int):
        return call_numpy(np.expand_dims, (a, axis), {})
    return view_of(np.expand_dims, (a, axis), {}, tensor_of(a).unsqueeze(axis))


def reshape(a: Any, shape: Any, **kwargs: Any) -> Any:
    return a.reshape(shape, **kwargs)


def ravel(a: Any, order: str = "C") -> Any:
    return a.ravel() if order == "C" else a.ravel(order)


def same(a: Any) -> Any:
    """np.asarray and its like of an array."""
    return a


def _parts(function: Any) -> Callable[..., Any]:
    def part(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
        if is_known(ary):
            return call_numpy(function, (ary, indices_or_sections, axis), {})
        if not isinstance(axis, int) or axis < 0:
            give_up("a numpy array is split along an axis that is counted from the end")
        if isinstance(indices_or_sections, int):
            size, count = ary.shape[axis], indices_or_sections
            if function is np.split and size % count:
                give_up("a numpy array is split into unequal parts")
            ends = []
            for i in range(count):
                ends.append(size // count * (i + 1) + min(i + 1, size % count))
        else:
            ends = [*indices_or_sections, ary.shape[axis]]
        begin, all_parts = 0, []
        for end in ends:
            all_parts.append(ary[(slice(None),) * axis + (slice(begin, end),)])
            begin = end
        return all_parts

    return part


def _operator(function: Any, is_reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, torch.Tensor):
            # A tensor on the left has no answer to an array, so that numpy computes, hands a tensor back, and warns of what torch lacks.
            if not is_reflected or other.requires_grad or not must_be_one_graph():
                give_up("an operator of a numpy array and a tensor")
            return torch.from_numpy(call_numpy(function, (array_of(other.detach()), self), {}))
        return call_numpy(function, (other, self) if is_reflected else (self, other), {})

    return method


def _in_place(function: Any) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, torch.Tensor):
            give_up("an operator of a numpy array and a tensor")
        if not write_known(function, (self, other)):
            tensor_of(self).copy_(tensor_of(call_numpy(written, (function, self, other), {})))
        return self

    return method


def _comparison(function: Any) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, torch.Tensor):
            give_up("a numpy array is compared with a tensor")
        return call_numpy(function, (self, other), {})

    return method


def _unary(function: Any) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return call_numpy(function, (self,), {})

    return method


def _method(function: Any) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call_numpy(function, (self, *args), kwargs)

    return method


def _put(cls: Any, name: str, function: Any) -> None:
    function.__name__ = name  # by which Python reads it where the graph ends
    setattr(cls, name, function)


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    _function = getattr(operator, _name if hasattr(operator, _name) else f"{_name}_")
    _put(ndarray, f"__{_name}__", _operator(_function, False))
    _put(ndarray, f"__r{_name}__", _operator(_function, True))
    _put(ndarray, f"__i{_name}__", _in_place(getattr(operator, f"i{_name}")))
    # A number is not written to: the name gets a new one.
    _put(number, f"__i{_name}__", _operator(_function, False))
for _name in "lt le eq ne gt ge".split():
    _put(ndarray, f"__{_name}__", _comparison(getattr(operator, _name)))
for _name in "neg pos abs invert".split():
    _put(ndarray, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in (
    "all any argmax argmin argpartition argsort clip conj conjugate copy cumprod cumsum diagonal dot flatten max mean min prod repeat round searchsorted std sum take trace var "
    "__copy__ __deepcopy__"
).split():
    _put(ndarray, _name, _method(getattr(np.ndarray, _name)))

VIEWS: dict[Any, Any] = {
    np.transpose: transpose,
    np.permute_dims: transpose,
    np.swapaxes: swapaxes,
    np.moveaxis: moveaxis,
    np.squeeze: squeeze,
    np.expand_dims: expand_dims,
    np.reshape: reshape,
    np.ravel: ravel,
    np.split: _parts(np.split),
    np.array_split: _parts(np.array_split),
}
"""What gives views of an array: interpreted."""

SAME = (np.asarray, np.asanyarray)
"""These give an array as it is, and share the memory of a tensor."""

# --- really called ---

NUMBERS: dict[Any, Any] = {
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.uint8: np.uint8,
    torch.uint16: np.uint16,
    torch.uint32: np.uint32,
    torch.uint64: np.uint64,
    torch.bool: np.bool_,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
}
DTYPES = {np.dtype(kind): dtype for dtype, kind in NUMBERS.items()}

# The shape or the type of the result depends on values; what is written to; what calls functions of the program's, or warns by Python about values.
REFUSED = frozenset(
    [
        getattr(home, name)
        for home, names in (
            (
                np,
                "apply_along_axis apply_over_axes argwhere array2string array_repr array_str bincount compress copyto delete extract fill_diagonal flatnonzero histogram histogram2d "
                "histogram_bin_edges histogramdd insert intersect1d ix_ may_share_memory nanargmax nanargmin nanmax nanmean nanmedian nanmin nanpercentile nanquantile nanstd nanvar nonzero "
                "piecewise place poly polyfit put put_along_axis putmask real_if_close repeat resize roots save savetxt savez savez_compressed setdiff1d setxor1d shares_memory trim_zeros "
                "union1d unique unique_all unique_counts unique_inverse unique_values choose select lexsort busday_count busday_offset is_busday datetime_as_string empty_like "
                "broadcast_to broadcast_arrays einsum_path min_scalar_type block unstack",
            ),
            (np.linalg, "eig eigvals lstsq"),
        )
        for name in names.split()
        if hasattr(home, name)
    ]
)
MAKERS = frozenset(
    [
        getattr(np, name)
        for name in "arange array asarray asanyarray ascontiguousarray zeros ones full eye identity tri indices tril_indices triu_indices diag_indices hamming hanning blackman bartlett kaiser".split()
    ]
)
TAKES_TENSORS = frozenset(
    [np.array, np.asarray, np.asanyarray, np.stack, np.concatenate, np.vstack, np.hstack, np.dot, np.linalg.norm]
)
_PLAIN = frozenset([np.ndim, np.shape, np.size, np.result_type, np.can_cast, np.isrealobj, np.iscomplexobj])


def may_call(function: Any) -> bool:
    """A function of numpy's that depends on its arguments alone, and on no value for the shapes of its results."""
    if isinstance(function, np.ufunc):
        return not hasattr(function, "pyfunc")
    try:
        if function in MAKERS:
            return True
        return (
            type(function) is type(np.sum)
            and (function.__module__ or "").startswith("numpy")
            and function not in REFUSED
        )
    except TypeError:
        return False


def _fact(array: Any, name: str) -> Any:
    return getattr(array, name)


def written(function: Any, array: Any, *args: Any) -> Any:
    """The array as it is after the function has written to it."""
    changed = array.copy(order="K")
    function(changed, *args)
    return changed


class Place:
    """Of an argument that the graph computes: an array, or a number."""

    def __init__(self, is_number: bool) -> None:
        self.is_number = is_number


class Made:
    """Of a result: what kind of array it is."""

    def __init__(self, index: int, is_number: bool) -> None:
        self.index, self.is_number = index, is_number


def _fill(form: Any, arrays: Iterator[Any]) -> Any:
    kind = type(form)
    if kind is Place:
        return next(arrays)
    if kind is list or kind is tuple:
        return kind([_fill(part, arrays) for part in form])
    if kind is dict:
        return {key: _fill(part, arrays) for key, part in form.items()}
    if kind is slice:
        return slice(_fill(form.start, arrays), _fill(form.stop, arrays), _fill(form.step, arrays))
    return form


def _places(form: Any) -> list[Place]:
    kind = type(form)
    if kind is Place:
        return [form]
    if kind is dict:
        form = list(form.values())
    elif kind is slice:
        form = [form.start, form.stop, form.step]
    elif kind is not list and kind is not tuple:
        return []
    return [place for part in form for place in _places(part)]


def _stand_in(place: Place, meta: Any, turn: int) -> Any:
    """An array of this kind, with other content at each turn."""
    size, stride, dtype = meta
    kind = np.dtype(NUMBERS[dtype])
    length = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else 0
    # Numbers that most functions take: floats are not all equal and none is zero; 0 and 1 are indices of most.
    if kind.kind in "biu":
        content = np.full(length, turn, kind)
    else:
        content = (0.5 + turn + np.arange(length) * 0.6180339887 % 1).astype(kind)
    array = np.lib.stride_tricks.as_strided(content, size, [s * kind.itemsize for s in stride])
    return array[()] if place.is_number else array


def ask_numpy(function: Any, form: Any, metas: list[Any]) -> Any:
    """While capturing: what numpy makes of arrays like these. A text where a node cannot give it, else the result with `Made` for arrays, what these are, and what they are views of."""
    first = _answer(function, form, metas, 0)
    if isinstance(first, str):
        return first
    second = _answer(function, form, metas, 1)
    # Where the other content is refused (an index out of range) it says nothing.
    if not isinstance(second, str) and [m[:3] for m in second[1]] != [m[:3] for m in first[1]]:
        return "gives an array whose shape depends on values"
    return first


def _answer(function: Any, form: Any, metas: list[Any], turn: int) -> Any:
    arrays = [_stand_in(place, meta, turn) for place, meta in zip(_places(form), metas, strict=True)]
    args, kwargs = _fill(form, iter(arrays))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*args, **kwargs)
    except Exception as error:  # whatever it is, numpy says it again where the program calls it
        return f"raises or warns ({type(error).__name__}: {error})"
    made: list[Any] = []
    is_fact = function is _fact or function in _PLAIN

    def look(value: Any) -> Any:
        if type(value) is np.ndarray or (isinstance(value, np.generic) and not is_fact):
            array = np.asarray(value)
            if array.dtype not in DTYPES or not array.dtype.isnative:
                raise ValueError(f"gives an array of {array.dtype}")
            if any(s < 0 or s % array.itemsize for s in array.strides) or (
                type(value) is np.ndarray and not value.flags.writeable
            ):
                raise ValueError("gives an array whose memory torch cannot share")
            shared = (
                [i for i, a in enumerate(arrays) if np.may_share_memory(a, array)] if type(value) is np.ndarray else []
            )
            made.append(
                (
                    array.shape,
                    tuple([s // array.itemsize for s in array.strides]),
                    DTYPES[array.dtype],
                    shared[0] if shared else -1,
                )
            )
            return Made(len(made) - 1, isinstance(value, np.generic))
        if isinstance(value, tuple) and (type(value) is tuple or hasattr(value, "_fields")):
            parts = [look(v) for v in value]
            return tuple(parts) if type(value) is tuple else type(value)(*parts)
        if type(value) is list:
            return [look(v) for v in value]
        if value is None or is_fact:
            return value
        raise ValueError("gives something that depends on the values of an array")

    try:
        return look(result), made
    except ValueError as error:
        return str(error)


_nodes: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_numbered: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _frozen(form: Any) -> Any:
    kind = type(form)
    if kind is Place:
        return (kind, form.is_number)
    if kind is list or kind is tuple:
        return (kind, *[_frozen(part) for part in form])
    if kind is dict:
        return (kind, *[(key, _frozen(part)) for key, part in form.items()])
    if kind is slice:
        return (kind, _frozen(form.start), _frozen(form.stop), _frozen(form.step))
    if kind in (int, float, complex, bool, str, bytes):
        return (kind, repr(form))
    return (kind, form)


def node_of(function: Any, form: Any, metas: list[Any], made: list[Any]) -> Callable[..., Any]:
    """What a graph calls by name: one function for the same call on arrays of other sizes, so that a recording at these is the same graph."""
    key: Any
    try:
        key = (function, _frozen(form), len(made))
        node = _nodes.get(key)
    except TypeError:
        key = node = None
    if node is None:
        node = Node(function, form, len(made))
        if key is not None:
            _nodes[key] = node
        _numbered[id(node)] = node
    node.kinds.append((metas, made))
    return node


class Node:
    def __init__(self, function: Any, form: Any, count: int) -> None:
        self.function, self.form, self.count, self.places = function, form, count, _places(form)
        self.__name__ = getattr(function, "__name__", "call")
        self.kinds: list[Any] = []
        """What it was given while capturing, and gives then."""

    def __call__(self, *tensors: Any) -> Any:
        for t in tensors:
            if type(t) is not torch.Tensor and type(t) is not torch.nn.Parameter:  # a backend traces the graph
                return tuple(_traced_call()(id(self), list(tensors)))
        return self.run(tensors)

    def run(self, tensors: Any) -> Any:
        arrays = [
            t.detach().numpy()[()] if p.is_number else t.detach().numpy()
            for p, t in zip(self.places, tensors, strict=True)
        ]
        args, kwargs = _fill(self.form, iter(arrays))
        # What would warn, or call a function of the program's, does so at the program's own line: the frame runs again as it is.
        strictly: Any = {kind: what if what == "ignore" else "raise" for kind, what in np.geterr().items()}
        with np.errstate(**strictly):
            result = self.function(*args, **kwargs)
        flat: list[Any] = []

        def look(value: Any) -> None:
            if isinstance(value, (np.ndarray, np.generic)):
                flat.append(torch.from_numpy(np.asarray(value)))
            elif isinstance(value, (tuple, list)):
                for v in value:
                    look(v)

        look(result)
        assert len(flat) == self.count
        return tuple(flat)

    def like(self, tensors: Any) -> Any:
        """The same on fake tensors of torch's: as numpy answered while capturing."""
        for metas, made in self.kinds:
            if all(
                tuple(t.shape) == size and tuple(t.stride()) == stride
                for t, (size, stride, _) in zip(tensors, metas, strict=True)
            ):
                return [torch.empty_strided(size, stride, dtype=dtype) for size, stride, dtype, _ in made]
        raise NotImplementedError(
            "a function of numpy's is traced with arrays of other sizes than it was captured with"
        )


@functools.cache
def _traced_call() -> Any:
    """The operator that a backend which traces the graph finds in the place of a node."""
    library = torch.library.Library("cutaway_numpy", "DEF")
    library.define("call(int node, Tensor[] arrays) -> Tensor[]")
    library.impl("call", lambda node, arrays: list(_numbered[node].run(arrays)), "CPU")
    torch.library.register_fake("cutaway_numpy::call", lambda node, arrays: _numbered[node].like(arrays), lib=library)
    _traced_call.library = library  # type: ignore[attr-defined]
    return torch.ops.cutaway_numpy.call


def to_number(tensor: Any) -> Any:
    """A recipe calls it."""
    return tensor.numpy()[()]


def name_of(function: Any) -> str:
    if function is written:
        return "numpy.written"
    name = getattr(function, "__name__", "call")
    return f"numpy.{name}"
