"""What a bundle says besides its graph: backend, options, state, seed, environment, versions, hardware, libraries."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch

from . import _native, _source

# Their values are places or affect speed alone; a worker has its own.
_NOT_RECORDED = {
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCHINDUCTOR_FX_GRAPH_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_CACHE",
}
_RECORDED = re.compile(
    r"TORCHINDUCTOR_\w+|OMP_NUM_THREADS|MKL_NUM_THREADS|CUDA_LAUNCH_BLOCKING|PYTORCH_CUDA_ALLOC_CONF"
)
_CACHE_OPTIONS = {
    "fx_graph_cache",
    "fx_graph_remote_cache",
    "autotune_local_cache",
    "autotune_remote_cache",
    "compile_threads",
    "force_disable_caches",
    "bundled_autotune_remote_cache",
    "worker_start_method",
    "quiesce_async_compile_pool",
}
_NAMESPACES_OF_TORCH = {
    "aten",
    "prims",
    "prim",
    "sym",
    "_c10d_functional",
    "c10d",
    "mkldnn",
    "mkl",
    "onednn",
    "quantized",
    "inductor",
    "torch",
    "torchvision",
    "rngprims",
    "profiler",
    "debugprims",
    "symm_mem",
    "_quantized",
}


def json_or_none(value: Any) -> str | None:
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        return None
    return text if json.loads(text) == value or isinstance(value, tuple) else None


def as_json(values: Mapping[str, Any], skipped: list[str]) -> dict[str, str]:
    texts = {}
    for key, value in values.items():
        text = json_or_none(value)
        if text is None:
            skipped.append(key)
        else:
            texts[key] = text
    return texts


def inductor_options() -> dict[str, Any]:
    """Inductor's settings that differ from their defaults, on this thread, now."""
    from torch._inductor import config as module

    config: Any = module
    found = {}
    for key, value in config.get_config_copy().items():
        entry = config._config.get(key)
        # Some settings are set to what they are by default; those are none of the user's.
        if entry is not None and key not in _CACHE_OPTIONS and not config._is_default(key) and value != entry.default:
            found[key] = value
    return found


def seed() -> int:
    """Of the global random state. numpy takes 32 bits."""
    return torch.initial_seed() % (1 << 32)


def versions() -> dict[str, str]:
    found = {"cutaway": _native.__version__, "python": platform.python_version(), "torch": str(torch.__version__)}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    for module in ("numpy", "transformers", "torchvision", "triton"):
        if module in sys.modules and hasattr(sys.modules[module], "__version__"):
            found[module] = str(sys.modules[module].__version__)
    return found


@functools.cache
def hardware() -> dict[str, str]:
    found = {
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": str(os.cpu_count() or 0),
    }
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
        if name:
            found["cpu"] = name
    except OSError:
        pass
    if torch.cuda.is_initialized():  # a program that uses no GPU must not be made to
        found["gpu"] = torch.cuda.get_device_name()
    return found


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if _RECORDED.fullmatch(k) and k not in _NOT_RECORDED}


AUTOCAST = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


def state(*, below_autograd: bool = False) -> dict[str, Any]:
    """Grad, inference and autocast state of this thread."""
    found: dict[str, Any] = {}
    grad = torch.is_grad_enabled() and not below_autograd
    if not grad:
        found["grad_enabled"] = False
    if torch.is_inference_mode_enabled():
        found["inference_mode"] = True
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    names = {dtype: name for name, dtype in AUTOCAST.items()}
    casts = [
        (device, True, names[torch.get_autocast_dtype(device)], torch.is_autocast_cache_enabled())
        for device in devices
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) in names
    ]
    if casts and not below_autograd:
        found["autocast"] = casts
    return found


def process() -> dict[str, str]:
    """Settings of the process that are not torch's defaults; the default device is one that torch keeps in Python."""
    device = torch.get_default_device()
    return {**_native.process_settings(), **({} if device.type == "cpu" else {"default_device": str(device)})}


def _operator_module(name: str) -> str | None:
    """The module that defined an operator in Python: as torch.library noted, else from where the dispatcher says it was."""
    qualified = name.split(".")
    if len(qualified) < 2:
        return None
    noted = sys.modules.get("torch._library.custom_ops")
    defined = getattr(noted, "OPDEFS", {}).get(f"{qualified[0]}::{qualified[1]}")
    if defined is not None:
        module = defined._init_fn.__module__
        return None if module in ("__main__", "__mp_main__") else str(module)
    try:
        text = torch._C._dispatch_dump(
            f"{qualified[0]}::{qualified[1]}" + (f".{qualified[2]}" if len(qualified) > 2 else "")
        )
    except RuntimeError:
        return None
    torchs = os.path.dirname(torch.__file__) + os.sep
    for file in re.findall(r"registered at ([^\s:]+\.py):\d+", text):
        if file.startswith(torchs):
            continue
        for module_name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == file and module_name != "__main__":
                return module_name
    return None


def has_operators_of_the_program(gm: torch.fx.GraphModule) -> bool:
    """An operator that no module defines which another process could import."""
    for node in gm.graph.nodes:
        name = getattr(node.target, "_qualname", None)  # of a torch.library.custom_op
        if isinstance(node.target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            name = str(node.target).replace(".", "::", 1)
        if not isinstance(name, str) or "::" not in name:
            continue
        name = name.replace("::", ".")
        if name.split(".")[0] not in _NAMESPACES_OF_TORCH and _operator_module(name) is None:
            return True
    return False


def libraries(graph: Any) -> tuple[list[str], list[str]]:
    """(modules that define the graph's own operators, operators whose module is not known)."""
    modules, unknown = set(), set()
    for name in set(_native.operators(graph)):
        if name.split(".")[0] in _NAMESPACES_OF_TORCH:
            continue
        module = _operator_module(name)
        if module is None:
            unknown.add(name)
        else:
            modules.add(module)
    return sorted(modules), sorted(unknown)


def registered_name(f: Callable[..., Any]) -> str | None:
    """The name under which torch knows this backend."""
    try:
        from torch._dynamo.backends import registry
    except ImportError:
        return None
    for name, known in list(getattr(registry, "_COMPILER_FNS", {}).items()):
        if known is f:
            return str(name)
    return None


class NamedBackend:
    """How a bundle names a backend: `name`, what else it needs (`extra`), and why no other process has it (`problem`)."""

    def __init__(self, backend: Any) -> None:
        self.extra: dict[str, str] = {}
        self.options: dict[str, Any] = {}
        self.problem = ""
        self.name = ""
        self._find(backend)

    @property
    def is_live(self) -> bool:
        """It is an object of this process that the program makes while it runs (``_live``)."""
        return self.name.startswith("live:")

    @property
    def is_inductor(self) -> bool:
        return bool(_native.backend_row(self.name)["is_inductor"])

    def _find(self, backend: Any) -> None:
        if isinstance(backend, str):
            registered = _registered_by_the_program(backend)
            if registered is None:
                self.name = backend
            else:
                self._find(registered)
            return
        wrapped = getattr(backend, "compiler_fn", None)  # torch's wrapper around a backend with mode and options
        if wrapped is not None and type(backend).__module__ == "torch":
            self.options.update((getattr(backend, "kwargs", {}) or {}).get("options") or {})
            self._find(wrapped)
            return
        named = getattr(backend, "compiler_name", None)  # torch's wrapper around Inductor
        if isinstance(named, str) and _native.backend_row(named)["is_inductor"]:
            self.options.update(getattr(backend, "config", {}) or {})
            self.name = named
            return
        registered = registered_name(backend)
        if registered is not None and _registered_by_the_program(registered) is None:
            self.name = registered
            return
        known = _source.import_name(backend)
        if known is not None:
            self.name = "python:" + ":".join(known)
            self.extra["python_path"] = json.dumps(_roots(known[0]))
            return
        try:
            name, text = _source.source_text(backend)
        except (ValueError, AttributeError) as e:
            described = _described(backend)
            self.name = "live:" + described
            self.problem = f"the backend {described} has no import name, and {e}"
            return
        self.name = "source:" + name
        self.extra["backend_source"] = json.dumps(text)
        self.extra["python_path"] = json.dumps(_roots("__main__"))


def _described(backend: Any) -> str:
    """A word for a backend that has no name of its own: the variable of the program that holds it, else its kind."""
    for name, value in vars(sys.modules["__main__"]).items():
        if value is backend and not name.startswith("_"):
            return name
    name = getattr(backend, "__qualname__", None) or type(backend).__qualname__
    return re.sub(r"\W+", "_", name.rpartition("<locals>.")[2]).strip("_") or "backend"


def _registered_by_the_program(name: str) -> Any:
    """The function under a name that another process does not know: neither torch nor an installed package registers it."""
    try:
        from torch._dynamo.backends import registry
    except ImportError:
        return None
    found = getattr(registry, "_COMPILER_FNS", {}).get(name)
    if found is None or _is_torchs(found):
        return None
    installed = {point.name for point in importlib.metadata.entry_points(group="torch_dynamo_backends")}
    return None if name in installed else found


def _is_torchs(function: Any) -> bool:
    if isinstance(function, functools.partial):
        return _is_torchs(function.func)
    module = getattr(function, "__module__", None) or ""
    parts = [v for v in (getattr(function, "kwargs", None) or {}).values() if callable(v)]  # of an AotAutograd
    return module.partition(".")[0] == "torch" and all(map(_is_torchs, parts))


def _roots(module: str) -> list[str]:
    """The directory from which a module's import starts."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file:
        return []
    root = os.path.dirname(os.path.abspath(file))
    if module == "__main__":
        return [root]
    for _ in range(module.count(".") + (os.path.basename(file) == "__init__.py")):
        root = os.path.dirname(root)
    return [root]
