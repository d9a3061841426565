"""Everything that a run of a program shows, as lines of text, so that two runs are equal exactly when their lines are.

A line names the place first (`result[0].w`), then what is there. An object met before is written as the place where it was first
met, so aliasing between results, arguments and globals is part of the text; tensors on one storage are tied together in the same way.
"""

import collections
import enum
import functools
import hashlib
import inspect
import types

import torch

PLAIN = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type(Ellipsis),
    torch.dtype,
    torch.device,
    range,
    slice,
    enum.Enum,
)


def is_program(module):
    """Classes of the programs that are compared are walked into; those of libraries are only named."""
    return module == "program" or str(module).startswith(("tests.", "test_", "area_"))  # area_: of a table of cases


class Description:
    def __init__(self, program_file):
        self.lines = []
        self.seen = {}  # id -> place
        self.storages = {}
        self.keep = []  # so that no id is used twice
        self.program_file = program_file

    def add(self, place, text):
        self.lines.append(f"{place}: {text}")

    def met(self, place, value):
        first = self.seen.setdefault(id(value), place)
        self.keep.append(value)
        if first != place:
            self.add(place, f"the object at {first}")
        return first != place

    def walk(self, place, value):
        if isinstance(value, PLAIN) and type(value).__module__ in ("builtins", "torch") or isinstance(value, enum.Enum):
            self.add(place, f"{type(value).__name__} {value!r}")
        elif isinstance(value, torch.Tensor):
            if not self.met(place, value):
                self.tensor(place, value)
        elif type(value) in (tuple, torch.Size) or isinstance(value, tuple):
            self.add(place, f"{type(value).__name__} of {len(value)}")
            for i, item in enumerate(value):
                self.walk(f"{place}[{i}]", item)
        elif self.met(place, value):
            pass
        elif isinstance(value, (list, collections.deque)):
            self.add(place, f"{type(value).__name__} of {len(value)}")
            for i, item in enumerate(value):
                self.walk(f"{place}[{i}]", item)
        elif isinstance(value, dict):
            self.add(place, f"{type(value).__name__} of {len(value)}")
            for i, (key, item) in enumerate(value.items()):
                if isinstance(key, PLAIN):
                    self.walk(f"{place}[{key!r}]", item)
                else:
                    self.walk(f"{place}.key{i}", key)
                    self.walk(f"{place}.value{i}", item)
        elif isinstance(value, (set, frozenset)):
            self.add(place, f"{type(value).__name__} {sorted(map(repr, value))}")
        elif isinstance(value, types.FunctionType):
            self.add(place, f"function {value.__qualname__} {value.__code__.co_firstlineno}")
            self.walk(f"{place}.defaults", value.__defaults__)
            self.walk(f"{place}.kwdefaults", value.__kwdefaults__)
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                try:
                    contents = cell.cell_contents
                except ValueError:
                    contents = "empty cell"
                self.walk(f"{place}.closure.{name}", contents)
        elif isinstance(value, types.MethodType):
            self.add(place, f"method {value.__func__.__qualname__}")
            self.walk(f"{place}.self", value.__self__)
        elif isinstance(value, functools.partial):
            self.add(place, f"partial {value.func!r:.40}")
            self.walk(f"{place}.args", value.args)
            self.walk(f"{place}.keywords", value.keywords)
        elif isinstance(value, types.GeneratorType):
            self.add(place, f"generator {value.__qualname__} {inspect.getgeneratorstate(value)}")
        elif isinstance(value, BaseException):
            self.add(place, f"{type(value).__name__} {value}")
        elif isinstance(value, torch.nn.Module):
            self.add(place, f"module {type(value).__name__}")
            self.walk(
                f"{place}.__dict__",
                {k: v for k, v in vars(value).items() if not k.endswith("_hooks") and "hooks_" not in k},
            )
        elif is_program(type(value).__module__):
            self.add(place, f"instance of {type(value).__name__}")
            for name, item in getattr(value, "__dict__", {}).items():
                self.walk(f"{place}.{name}", item)
            for name in getattr(type(value), "__slots__", ()):
                self.walk(f"{place}.{name}", getattr(value, name, "no value"))
        elif isinstance(value, type) and is_program(getattr(value, "__module__", None)):
            self.add(place, f"class {value.__name__}")
            for name, item in vars(value).items():
                if isinstance(item, PLAIN) and not name.startswith("__"):
                    self.walk(f"{place}.{name}", item)
        else:
            self.add(place, f"{type(value).__name__} {getattr(value, '__qualname__', '')}")

    def tensor(self, place, t):
        data = t.detach()
        digest = "none"
        if t.numel():
            digest = hashlib.blake2b(
                data.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(), digest_size=8
            ).hexdigest()
        storage = self.storages.setdefault(t.untyped_storage()._cdata, place)
        shown = [round(v, 4) if isinstance(v, float) else v for v in data.reshape(-1)[:4].tolist()]
        self.add(
            place,
            f"{type(t).__name__} {t.dtype} {tuple(t.shape)} stride {t.stride()} offset {t.storage_offset()} "
            f"grad {t.requires_grad} leaf {t.is_leaf} storage {storage} data {digest} {shown}",
        )
        if t.is_leaf and t.grad is not None:
            self.walk(f"{place}.grad", t.grad)

    def exception(self, place, error):
        """Type, text, and the lines of the program that the traceback shows, for it and for what it came from."""
        depth = 0
        while error is not None and depth < 4:
            lines, step = [], error.__traceback__
            while step is not None:
                code = step.tb_frame.f_code
                if code.co_filename == self.program_file:
                    lines.append(f"{code.co_name}:{step.tb_lineno}")
                step = step.tb_next
            if isinstance(error, UnboundLocalError) and lines:
                # 3.11 runs a store and the load behind it as one instruction once the code is warm, and then tells the store's line.
                lines[-1] = lines[-1].split(":")[0]
            if isinstance(error, RecursionError):
                lines = lines[:1]  # how deep it went before is nobody's business
            self.add(place, f"{type(error).__module__}.{type(error).__qualname__}: {error} | {' '.join(lines)}")
            for name, item in vars(error).items():
                self.walk(f"{place}.{name}", item)
            cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
            place += ".cause"
            error, depth = cause, depth + 1

    def modes(self):
        """Modes of torch after a call: what a program leaves, the next one finds."""
        depth = torch.autocast_increment_nesting() - 1  # below zero, casts of weights outlive their block
        torch.autocast_decrement_nesting()
        self.add("inference mode", torch.is_inference_mode_enabled())
        self.add(
            "autocast",
            (
                torch.is_autocast_enabled("cpu"),
                torch.get_autocast_dtype("cpu"),
                torch.is_autocast_cache_enabled(),
                depth,
            ),
        )
        self.add("default dtype", torch.get_default_dtype())
        self.add("torch function", torch._C._is_torch_function_enabled())


def gradients(values):
    """A scalar of everything that requires grad, in the order of appearance; None if nothing does."""
    found, seen = [], set()

    def look(value):
        if isinstance(value, torch.Tensor):
            if value.requires_grad and not value.is_leaf and id(value) not in seen:
                seen.add(id(value))
                found.append(value.double().sum())
        elif isinstance(value, (list, tuple)):
            for item in value:
                look(item)
        elif isinstance(value, dict):
            for item in value.values():
                look(item)
        elif (
            is_program(type(value).__module__) and not isinstance(value, torch.nn.Module) and hasattr(value, "__dict__")
        ):
            if id(value) not in seen:
                seen.add(id(value))
                for item in vars(value).values():
                    look(item)

    look(values)
    return sum(found) if found else None
