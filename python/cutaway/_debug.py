"""``cutaway.debug(backend)``: a backend for torch.compile that watches another one, levels 1 to 4.

1 on an exception, write the graph. 2 (default) write what a reduction needs, and tell the command. 3 write before
compiling and again before every run, for crashes that kill the process. 4 compare every run with eager and an fp64 run.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from . import _commands, _failure, _live, _manifest, _native, _repro
from ._backends import callable_or_refused, make_parameters
from ._failure import AccuracyError
from ._graph import all_inputs
from ._native import Error, Graph, Verdict
from ._run import Draws, cast_to_fp64, run_fwd_maybe_bwd, same_random_state

__all__ = ["Watch", "debug"]

_here = threading.local()


@contextlib.contextmanager
def _off() -> Iterator[None]:
    """Inside, nothing is watched: neither by us, nor by torch's own dumping."""
    import torch._dynamo.config as config

    before = getattr(_here, "off", False)
    _here.off = True
    try:
        with config.patch(repro_after=None):
            yield
    finally:
        _here.off = before


def _is_off() -> bool:
    return getattr(_here, "off", False)


@contextlib.contextmanager
def _own_metrics() -> Iterator[None]:
    """Torch's record of the compilation under way is put aside: a backward graph compiled inside is another one."""
    from torch._dynamo.utils import get_metrics_context

    context = get_metrics_context()
    before = dict(vars(context))
    vars(context).update(vars(type(context)(on_exit=before["_on_exit"])))
    try:
        yield
    finally:
        vars(context).clear()
        vars(context).update(before)


def _synchronise(values: Sequence[Any]) -> None:
    """An asynchronous error is raised where it happened."""
    devices = {v.device for v in values if isinstance(v, torch.Tensor) and v.device.type not in ("cpu", "meta")}
    for device in devices:
        module = getattr(torch, device.type, None)
        if module is not None and hasattr(module, "synchronize"):
            module.synchronize(device)


class ProcessEnded(Exception):
    """Something in a backend ended the process, without an exception."""


_inside: list[tuple[int, _Watched, Sequence[Any]]] = []  # (process, graph, inputs) of what runs in backends now


@contextlib.contextmanager
def _ending(graph: _Watched, inputs: Sequence[Any]) -> Iterator[None]:
    """os._exit inside tells of itself before it happens. Processes that are forked inside end as they like."""
    here = (os.getpid(), graph, inputs)
    _inside.append(here)
    try:
        yield
    finally:
        _inside.remove(here)


def _watch_exits() -> None:
    leave = os._exit

    @functools.wraps(leave)
    def tell_and_leave(status: int) -> None:
        process, graph, inputs = _inside[-1] if _inside else (0, None, ())
        _inside.clear()
        if graph is not None and process == os.getpid():
            with contextlib.suppress(Exception):
                graph.ended(status, inputs)
        leave(status)

    os._exit = tell_and_leave  # type: ignore[assignment]


@contextlib.contextmanager
def _around(state: Mapping[str, Any]) -> Iterator[None]:
    """The state that a call was made under, as `_manifest.state` has it."""
    with contextlib.ExitStack() as stack:
        if state.get("inference_mode"):
            stack.enter_context(torch.inference_mode())
        stack.enter_context(torch.set_grad_enabled(state.get("grad_enabled", True)))
        on = {device: (dtype, cache) for device, _, dtype, cache in state.get("autocast", ())}
        for device in {"cpu", *on}:
            dtype, cache = on.get(device, ("bf16", True))
            stack.enter_context(
                torch.autocast(device, _manifest.AUTOCAST[dtype], enabled=device in on, cache_enabled=cache)
            )
        yield


_RANDOM = re.compile(
    r"dropout|rand|bernoulli|normal_|multinomial|uniform|exponential|poisson|rrelu|attention", re.IGNORECASE
)


def has_random(gm: torch.fx.GraphModule) -> bool:
    """Whether a node may draw random numbers, by its name; rather one too many."""
    for node in gm.graph.nodes:
        module = gm.get_submodule(node.target) if node.op == "call_module" else None
        if node.op.startswith("call") and _RANDOM.search(f"{node.target} {type(module).__name__}"):
            return True
    return False


def _versions(values: Sequence[Any]) -> list[int | None]:
    found: list[int | None] = []
    for v in values:
        try:
            found.append(v._version if isinstance(v, torch.Tensor) else None)
        except RuntimeError:  # inference tensors have none
            found.append(None)
    return found


def _annotate(error: BaseException, lines: Sequence[str], path: str | None) -> None:
    with contextlib.suppress(AttributeError, TypeError):
        if path is not None:
            error.minifier_path = path  # type: ignore[attr-defined]
    for line in lines:
        error.add_note(line)


class Watch:
    """A backend around a backend."""

    def __init__(
        self,
        backend: Any = "inductor",
        *,
        after: str = "capture",
        level: int = 2,
        base_dir: str | os.PathLike[str] | None = None,
        max_bytes: int = _repro.MAX_BYTES,
        check_calls: int | None = None,
        minify: str | bool = "auto",
        forward_only: bool = False,
        ignore_non_fp: bool = False,
        tolerance: float = 1e-3,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(level, bool) or level not in (1, 2, 3, 4):
            raise Error(
                f"level is {level!r}\n   because: 1 graph on an exception, 2 what a reduction needs, "
                "3 before every step, 4 accuracy"
            )
        if minify not in ("auto", True, False):
            raise Error(
                f"minify is {minify!r}\n"
                '   because: it is "auto" (at once after capture, on request after aot), True or False'
            )
        self.stage = _repro._stage(after)
        self.level = level
        self.backend = _known(backend)
        self.check_calls = check_calls
        self.minify = self.stage == "capture" if minify == "auto" else bool(minify)
        self.forward_only = forward_only
        self.ignore_non_fp = ignore_non_fp
        self.tolerance = tolerance
        self.options = dict(options or {})
        self.writer = _repro.Writer(self.backend, base_dir=base_dir, max_bytes=max_bytes, options=self.options)
        self.count = 0
        if callable(self.backend):
            functools.update_wrapper(self, self.backend, updated=())
        name = self.writer.named.name or getattr(self.backend, "__name__", "backend")
        self.__name__ = name if name.startswith("command:") else name.rpartition(":")[2]
        self.compiler_name = self.__name__
        if hasattr(self.backend, "get_compiler_config"):
            self.get_compiler_config = self.backend.get_compiler_config
        if self.stage == "aot" and not self._reaches_aot():
            raise Error(
                f"{name} does its own ahead-of-time autograd, and what it compiles is not seen from outside\n"
                '   try: after="capture"'
            )
        install()

    def _watched(self, *arguments: Any) -> _Watched:
        """One graph under watch: the arguments of _Watched after the first."""
        return _Watched(self, *arguments)

    def _next_name(self) -> str:
        self.count += 1
        return f"graph_{self.count - 1}"

    def _reaches_aot(self) -> bool:
        from torch._dynamo.backends.common import AotAutograd

        name = self.writer.named.name
        if isinstance(getattr(self.backend, "compiler_fn", self.backend), AotAutograd):
            return bool(_native.backend_row(name)["last_stage"] == "aot")
        return not name or _native.has_backend_row(name)

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **keywords: Any) -> Any:
        if _is_off():
            return self._compile(gm, example_inputs, keywords)
        if self.stage == "aot":
            if "cutaway_graph" in gm.meta:
                return self._compile_after_own_aot(gm, example_inputs, keywords)
            return self._compile_after_aot(gm, example_inputs, keywords)
        name = self._next_name()
        # "aot_eager" means ours for graphs of our own capture and torch's for those of Dynamo; a trial must know which.
        extra = {"autograd": '"cutaway"'} if "cutaway_graph" in gm.meta else {}
        return self._watched(gm, name, functools.partial(self._compile, keywords=keywords), extra).compile(
            example_inputs
        )

    # ---- the backend itself ----

    def _inductor_options(self, gm: torch.fx.GraphModule, keywords: dict[str, Any]) -> dict[str, Any]:
        options = {**self.writer.named.options, **self.options, **(keywords.pop("config_patches", None) or {})}
        mode = keywords.pop("mode", None)
        if mode:
            from torch._inductor import list_mode_options

            options = {**list_mode_options(mode), **options}
        options.update({k.replace("-", "_"): v for k, v in (keywords.pop("options", None) or {}).items()})
        keywords.clear()
        if self.level == 4 and has_random(gm):  # else the two draw different numbers, and all of them would look wrong
            options.setdefault("fallback_random", True)
        self.writer.options = options
        return options

    def _compile(
        self,
        gm: torch.fx.GraphModule,
        inputs: Sequence[Any],
        keywords: dict[str, Any],
        inner: Callable[..., Any] | None = None,
    ) -> Any:
        with _off():
            if self.writer.named.is_inductor:
                import torch._functorch.config as functorch_config
                import torch._inductor.config as config
                from torch._inductor.compile_fx import compile_fx

                options = self._inductor_options(gm, dict(keywords))
                more: Any = {"inner_compile": inner} if inner is not None else {}
                # A cached graph could hide a fault in lowering, or keep the inner compiler from being called.
                settings = {"enable_autograd_cache": False}
                if (
                    self.level == 4 and self.stage == "aot"
                ):  # a backward graph may write to what was saved for it: no input of the user's
                    settings["donated_buffer"] = False
                with functorch_config.patch(settings), config.patch(fx_graph_cache=False):
                    return compile_fx(gm, inputs, config_patches=options or None, **more)
            if isinstance(self.backend, str):
                row = _native.backend_row(self.backend)
                if row["lives"] != "Python" and not row["is_torchs"]:  # torch has no name for it
                    return _compile_native(self.backend, gm, inputs, self.stage)
                if row["of_ours"] and "cutaway_graph" in gm.meta:
                    return _compile_native(row["of_ours"], gm, inputs, self.stage)
                from torch._dynamo.backends.registry import lookup_backend

                backend: Any = lookup_backend(self.backend)
                return backend(gm, inputs, **keywords)
            if self.options:
                keywords = {**keywords, "options": {**self.options, **(keywords.get("options") or {})}}
            return self.backend(gm, inputs, **keywords)

    def _compile_after_own_aot(
        self, gm: torch.fx.GraphModule, inputs: Sequence[Any], keywords: dict[str, Any]
    ) -> Callable[..., Any]:
        """A graph of our own capture: ahead-of-time autograd is ours too, and nothing of Dynamo or of torch's is asked."""
        self.count += 1
        raised: list[Exception] = []

        def compile_part(part: Graph, examples: list[Any]) -> Callable[[list[Any]], Sequence[Any]]:
            values = [v.detach() if isinstance(v, torch.Tensor) else v for v in examples]
            try:
                module = part.to_fx()
                extra: dict[str, str] = {}
                if self.writer.named.is_inductor:
                    module = _decomposed(module, values)
                    extra = {"compile_arguments": json.dumps({"is_backward": "__backward_" in part.name})}
                compile_ = functools.partial(self._compile_part, keywords=keywords, extra=extra)
                watched = self._watched(module, part.name.replace("__", "_"), compile_, extra)
                run = watched.compile(values)
            except Error:
                raise  # the graph is refused
            except Exception as error:
                raised.append(error)
                raise

            def call(given: list[Any]) -> Sequence[Any]:
                out = run(given)
                return out if isinstance(out, (list, tuple)) else [out]

            return call

        graph = gm.meta["cutaway_graph"]
        # The graph has the operators of an autograd function's forward part; its backward is found by running the fx graph.
        own = any(getattr(node.target, "is_autograd_function", False) for node in gm.graph.nodes)
        runner = _native.AotGraph(
            graph,
            name=gm.meta.get("cutaway_name") or "model",
            backend=compile_part,
            program=(lambda values: list(gm(*values))) if own else None,
        )
        try:
            runner.find(inputs)
        except Error as problem:
            if raised:
                raise
            _failure.notice(f"{_shown_name(gm)} runs eagerly, unwatched: {problem}")
            return gm.forward
        return runner

    def _compile_part(
        self, gm: torch.fx.GraphModule, inputs: Sequence[Any], keywords: dict[str, Any], extra: Mapping[str, str]
    ) -> Any:
        """What a compiler after ahead-of-time autograd makes of a forward or backward graph of ours."""
        if _native.backend_row(self.writer.named.name)["runs_operators"]:
            return gm.forward
        if not self.writer.named.is_inductor:
            return self._compile(gm, inputs, dict(keywords))
        import torch._inductor.config as config
        from torch._inductor.compile_fx import compile_fx_inner

        from ._backends import fake_inputs

        options = self._inductor_options(gm, dict(keywords))
        with _off(), config.patch({"fx_graph_cache": False, **options}):
            return compile_fx_inner(gm, fake_inputs(gm, inputs), **json.loads(extra["compile_arguments"]))

    def _compile_after_aot(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
        name = self._next_name()
        known = list(inputs)  # the data behind the fake inputs of the forward graph
        if self.writer.named.is_inductor:
            import torch._inductor.config as config
            from torch._inductor.compile_fx import compile_fx_inner

            def inner(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], **arguments: Any) -> Any:
                part = (
                    "backward"
                    if arguments.get("is_backward")
                    else "inference"
                    if arguments.get("is_inference")
                    else "forward"
                )
                plain = {
                    k: v
                    for k, v in arguments.items()
                    if k in ("is_backward", "is_inference", "layout_opt") and isinstance(v, bool)
                }

                def compile_(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
                    with _off(), config.patch(fx_graph_cache=False):  # of a backward graph too, which comes later
                        return compile_fx_inner(gm, example_inputs, **arguments)

                extra = {"compile_arguments": json.dumps(plain)} if plain else {}
                return self._watched(gm, _graph_name(name, part), compile_, extra, known).compile(example_inputs)

            try:
                return self._compile(gm, inputs, keywords, inner)
            finally:
                known.clear()  # a backward graph that is compiled later has other inputs

        from torch._dynamo.backends.common import aot_autograd

        def compiler(part: str) -> Callable[..., Any]:
            def compile_(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
                if _native.backend_row(self.writer.named.name)["runs_operators"]:
                    return gm.forward
                return self._compile(gm, example_inputs, dict(keywords))

            def watched(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
                return self._watched(gm, _graph_name(name, part), compile_, {}, known).compile(example_inputs)

            return watched

        compile_all = aot_autograd(
            fw_compiler=compiler("forward"), bw_compiler=compiler("backward"), inference_compiler=compiler("inference")
        )
        import torch._functorch.config as functorch_config

        try:
            with functorch_config.patch(enable_autograd_cache=False):
                return compile_all(gm, inputs)
        finally:
            known.clear()


class _Watched:
    """One graph on its way through a backend."""

    def __init__(
        self,
        watch: Watch,
        gm: torch.fx.GraphModule,
        name: str,
        compile_: Callable[..., Any],
        extra: Mapping[str, str],
        known: list[Any] | None = None,
    ) -> None:
        self.watch = watch
        self.known = known or []
        self.name = name
        self.extra = dict(extra)
        self.given = gm
        self.graph = _repro.copy_of(gm)  # before the backend may rewrite it
        self.compile_ = compile_
        self.compiled: Any = None
        self.is_boxed = False
        self.checked = 0
        self.is_symbolic = False
        self.number = 0
        self.process = os.getpid()
        self.is_random = has_random(self.graph)
        self.generators: dict[str, str] = {}  # before the newest call, where it may draw
        self.backward_state: dict[str, Any] | None = None  # None: as around the call
        self.has_seen_backward = False
        self.waits_for_backward = False  # a difference shows under one state of backward and not under another

    @property
    def is_below_autograd(self) -> bool:
        return self.watch.stage == "aot"

    def compile(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.is_symbolic = any(isinstance(v, (torch.SymInt, torch.SymFloat)) for v in inputs)
        self.number = _live.arrived(self.compile_)
        self.process = os.getpid()
        if self.watch.level == 3:
            self._try_write(inputs, with_data=False)
        has_data = not any(_repro.is_fake(v) for v in inputs)
        try:
            with _ending(self, inputs):
                self.compiled = callable_or_refused(self.compile_(self.given, inputs))
            # torch.compile calls what a backend returns with plain arguments, whatever it says of itself.
            self.is_boxed = self.is_below_autograd and bool(getattr(self.compiled, "_boxed_call", False))
        except BaseException as error:
            self._failed(error, inputs)
            raise
        finally:
            del self.given
        if has_data and not self.is_below_autograd:
            self._try_at_once([_repro.concrete(v) for v in inputs])
        if self.is_below_autograd:

            def run(inputs: list[Any]) -> Any:
                return self.run(inputs)

            run._boxed_call = True  # type: ignore[attr-defined]
            return run
        return lambda *inputs: self.run(list(inputs))

    def _call(self, inputs: list[Any]) -> Any:
        return self.compiled(inputs) if self.is_boxed else self.compiled(*inputs)

    def _try_at_once(self, inputs: list[Any]) -> None:
        """Forward and, if it can, backward, right after compiling: failures at run time show here."""
        self._note_state()
        if self.watch.level == 3:
            self._try_write(inputs)
        if self.watch.level == 4 and self._should_check():
            self._check_whatever_ends(inputs)
            return
        try:
            with _ending(self, inputs), _off(), _own_metrics(), same_random_state(_manifest.seed()):
                # A closure, because the compiled object may refuse to be deep-copied.
                run_fwd_maybe_bwd(lambda *values: self._call(list(values)), inputs, self.watch.forward_only)
                _synchronise(inputs)
        except BaseException as error:
            self._failed(error, inputs)
            raise

    def run(self, inputs: list[Any]) -> Any:
        if _is_off():
            return self._call(inputs)
        self.process = os.getpid()
        noted = list(inputs)  # a boxed callee empties its list
        versions = _versions(noted)
        self._note_state()
        if self.watch.level == 3:
            self._try_write(noted)
        if self.watch.level == 4 and self._should_check():
            self._check_whatever_ends(noted)
        try:
            with _ending(self, noted), _off():
                out = self._call(inputs)
                _synchronise(noted)
        except BaseException as error:
            changed = [i for i, (a, b) in enumerate(zip(versions, _versions(noted), strict=True)) if a != b]
            self._failed(error, noted, {"inputs_changed_by_the_run": json.dumps(changed)} if changed else {})
            raise
        if self.watch.level == 4 and not self.has_seen_backward:
            self._watch_backward(out, noted, versions)
        return out

    def _note_state(self) -> None:
        """What a bundle of this call has to say and cannot be asked for afterwards."""
        if self.is_random:
            self.generators = _native.generators()
        if not self.has_seen_backward:  # torch's advice is to leave autocast before backward
            self.backward_state = {} if "autocast" in _manifest.state() and not self.is_below_autograd else None

    def _watch_backward(self, out: Any, inputs: list[Any], versions: list[int | None]) -> None:
        """Backward runs under a state of its own, which shows when it runs: where it is another one, the call is checked again."""
        tensors = out if isinstance(out, (list, tuple)) else (out,)
        root = next((t for t in tensors if isinstance(t, torch.Tensor) and t.grad_fn is not None), None)
        if root is None:
            return
        around = _manifest.state()

        def seen(_: torch.Tensor) -> None:
            if self.has_seen_backward or _is_off():
                return
            self.has_seen_backward = True
            now = {k: v for k, v in _manifest.state().items() if k == "autocast"}
            same = now.get("autocast") == around.get("autocast")
            before, self.backward_state = self.backward_state, None if same else now
            if (
                (self.waits_for_backward or self.backward_state != before)
                and versions == _versions(inputs)
                and self._should_check()
            ):
                with _around(around):
                    self._check(inputs)

        root.register_hook(seen)

    # ---- level 4 ----

    def _should_check(self) -> bool:
        return self.watch.check_calls is None or self.checked < self.watch.check_calls

    def _check_whatever_ends(self, inputs: list[Any]) -> None:
        try:
            with _ending(self, inputs):
                self._check(inputs)
        except Exception:
            raise  # told already
        except BaseException as error:
            self._failed(error, inputs)
            raise

    def _check(self, inputs: list[Any]) -> None:
        self.checked += 1
        grad = torch.no_grad() if self.is_below_autograd else contextlib.nullcontext()
        with _off(), _own_metrics(), grad:
            verdict, error = self._verdict(inputs)
            if not verdict and self._would_pass_as_around_the_call(inputs):
                self.waits_for_backward = True
                return
        if error is not None:
            self._failed(error, inputs)
            raise error
        if verdict:
            self._tell(verdict, inputs)
            return
        if verdict.outcome in ("refused", "nondeterministic"):
            self._not_judged(verdict.reason)
            return
        failure = AccuracyError(f"{self.name}: the numbers of {self.watch.__name__} differ from eager's\n{verdict}")
        failure.verdict = verdict
        self._report(failure, inputs, _native.accuracy_signature(verdict), "accuracy", {})
        raise failure

    def _would_pass_as_around_the_call(self, inputs: list[Any]) -> bool:
        """Until backward has run its state is a guess. What another guess does not show is no failure yet: backward tells."""
        guess = self.backward_state
        if guess is None or self.has_seen_backward:
            return False
        self.backward_state = None
        verdict, _ = self._verdict(inputs)
        self.backward_state = guess
        return bool(verdict)

    def _verdict(self, inputs: list[Any]) -> tuple[Verdict, Exception | None]:
        """Eager, fp64 and the compiled graph on the same inputs, by the rule of every command; what the compiled one raised."""
        graph, held = self.graph, [*self.graph.parameters(), *self.graph.buffers()]
        parameters = [i for i, v in enumerate(inputs) if isinstance(v, torch.nn.Parameter)]

        def run_compiled(values: list[Any]) -> Any:
            make_parameters(values, parameters)
            return self._call(list(values))

        try:
            wide = cast_to_fp64(copy.deepcopy(graph), ())[0]
            held_wide = [*wide.parameters(), *wide.buffers()]  # type: ignore[attr-defined]
        except Exception:  # not every graph can be copied
            wide, held_wide = None, []  # type: ignore[assignment]
        draws = Draws() if self.is_random else None

        def run_eager(values: list[Any]) -> Any:
            with draws.kept() if draws else contextlib.nullcontext():
                return graph(*values)

        def run_wide(values: list[Any]) -> Any:
            with draws.given() if draws else contextlib.nullcontext():
                return wide(*values)  # type: ignore[misc]

        try:
            judge = _native.Judge(
                run_eager,
                run_wide if wide is not None else None,
                list(inputs),
                held=held,
                held_fp64=held_wide,
                only_forward=self.is_below_autograd or self.watch.forward_only,
                backward_state=self.backward_state,
                generators=self.generators or _native.generators(),
                tolerance=self.watch.tolerance,
                ignore_non_fp=self.watch.ignore_non_fp,
                sees_layout=not self.is_below_autograd
                and _native.backend_row(self.watch.writer.named.name)["differentiates"],
            )
        except Exception as error:
            return Verdict("refused", "", f"the reference run raised: {_failure.one_line(error)}"), None
        try:
            results = judge.run(run_compiled)
        except Exception as error:
            return Verdict("raised"), error
        verdict = judge.judge(results)
        if not verdict and not (again := judge.repeat_eager()):
            reason = f"two runs of eager with the same random state differ ({again.path}: {again.reason})"
            verdict = verdict.with_outcome("nondeterministic", reason)
        return verdict, None

    def _tell(self, verdict: Verdict, inputs: Sequence[Any]) -> None:
        """A check that passed; for those who keep a record."""

    def _not_judged(self, reason: str) -> None:
        _failure.notice(f"{self.name} could not be judged: {reason}")

    # ---- what is written ----

    def _failed(self, error: BaseException, inputs: Sequence[Any], extra: Mapping[str, str] | None = None) -> None:
        if os.getpid() != self.process:
            return  # what the backend forked ends as it likes
        if not _failure.is_users_interrupt(error):
            data, more = self._data(inputs)
            self._report(error, data, _failure.signature(error), "", {**more, **(extra or {})})

    def _data(self, inputs: Sequence[Any]) -> tuple[Sequence[Any], dict[str, str]]:
        """The inputs, or the captured graph's where these are fake and those can stand for them."""
        data = _repro.data_behind(inputs, self.known)
        if data is None:
            return inputs, {}
        return data, {"data_from": json.dumps("the inputs of the captured graph")}

    def ended(self, code: int, inputs: Sequence[Any]) -> None:
        """The process is about to end: os._exit was called in here."""
        data, more = self._data(inputs)
        failure = {"kind": "crash", "stage": "backend", "signal": f"exit {code}"}
        self._report(ProcessEnded(f"the backend called os._exit({code})"), data, failure, "", more)

    def _report(
        self,
        error: BaseException,
        inputs: Sequence[Any],
        failure: Mapping[str, str],
        accuracy: str,
        extra: Mapping[str, str],
    ) -> str:
        """Writes the bundle and adds where it is to the error. Returns why there is none; empty: there is one, or none is wanted."""
        if _live.is_serving():
            return ""
        try:
            path = self._write(inputs, failure=failure, accuracy=accuracy, extra=extra)
        except Exception as problem:  # the user's own error matters more than ours
            why = f"cutaway: no repro was written: {problem}"
            _annotate(error, [why], None)
            return why
        lines = [
            f"cutaway: repro written to {path}",
            f"cutaway {'run' if self.watch.level == 1 else 'minify'} {_repro.on_the_command_line(path)}",
        ]
        # A backend that lives here is served by another run of the program: that is for its user to ask for.
        if self.watch.minify and self.watch.level != 1 and not self.watch.writer.named.is_live:
            try:
                with _off():
                    small = _commands.reduce(path, trust=True)
            except Error as problem:
                _failure.notice(f"not reduced: {problem}")
            else:
                path = small["bundle"]
                what = f"{small['nodes_before']} -> {small['nodes_after']} nodes"
                # Torch alone has no native: there the script shows the graph, and not the failure.
                has_it = small["repro"] and _native.backend_row(self.watch.writer.named.name)["is_torchs"]
                following = f"python {small['repro']}" if has_it else f"cutaway run {_repro.on_the_command_line(path)}"
                lines = [f"cutaway: reduced, {what}", f"cutaway: repro written to {path}", following]
        _annotate(error, lines, path)
        return ""

    def _write(self, inputs: Sequence[Any], **more: Any) -> str:
        extra = {**self.extra, **more.pop("extra", {})}
        program = _live.description(self.number, self.watch.stage)
        mode = "symbolic" if self.is_symbolic and self.is_below_autograd else "real"
        return self.watch.writer.write(
            self.graph,
            inputs,
            name=self.name,
            stage=self.watch.stage,
            tracing_mode=mode,
            extra=extra,
            backward_state=self.backward_state,
            generators=self.generators,
            program=program,
            **more,
        )

    def _try_write(self, inputs: Sequence[Any], with_data: bool = True) -> None:
        try:
            self._write(inputs, with_data=with_data)
        except Exception as problem:
            _failure.notice(f"{self.name}: no repro was written: {problem}")


def _graph_name(ours: str, part: str) -> str:
    """torch's name of the graph that is being compiled (model, part, number); ours where it has none."""
    try:
        from torch._functorch._aot_autograd.logging_utils import get_aot_graph_name

        name = str(get_aot_graph_name()).replace("__", "_")
    except Exception:
        name = ""
    return name if part in name else f"{name or ours}_{part}"


def _shown_name(gm: torch.fx.GraphModule) -> str:
    return str(gm.meta.get("cutaway_name") or "a graph")


def _decomposed(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> torch.fx.GraphModule:
    """With the operators that Inductor wants taken apart: ahead-of-time autograd of torch's does it while it traces."""
    from torch._inductor.decomposition import select_decomp_table
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        return make_fx(gm, decomposition_table=select_decomp_table(), tracing_mode="fake")(*inputs)


def _compile_native(name: str, gm: torch.fx.GraphModule, inputs: Sequence[Any], stage: str) -> Callable[..., Any]:
    """A backend of our own table, behind torch's contract."""
    from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode_stack

    with _disable_current_modes():
        graph = _repro.import_graph(gm, inputs, stage)

    def values(given: Sequence[Any]) -> list[Any]:
        return all_inputs(graph, [_repro.concrete(v) for v in _repro.taken_by(graph, given)])

    compiled = _native.compile_backend(
        name, graph, values(inputs) if _native.backend_row(name)["has_aot_stage"] else [], stage
    )

    def run(*given: Any) -> Any:
        # Under a dispatch mode native runs operators, so that the mode sees them. One of torch's own looks at the first call after its
        # ahead-of-time autograd: with it the kernels would not be there to be compared.
        modes = _get_current_dispatch_mode_stack()
        if modes and all(type(mode).__module__.startswith("torch._functorch._aot_autograd.") for mode in modes):
            with _disable_current_modes():
                return compiled(values(given))
        return compiled(values(given))

    return run


def _known(backend: Any) -> Any:
    if isinstance(backend, Watch):
        return backend.backend
    if isinstance(backend, str) or callable(backend):
        return backend
    raise Error(f"a backend is a name or a function of (GraphModule, example inputs), not {type(backend).__name__}")


def debug(backend: Any = "inductor", after: str = "capture", level: int = 2, **options: Any) -> Watch:
    """A backend for ``torch.compile`` that watches `backend` and leaves a bundle when it fails.

    ``after``: "capture" sees the graph that Python gave, "aot" the forward and backward graphs of ahead-of-time
    autograd. Levels: 1 graph on an exception, 2 what a reduction needs, 3 before every step, 4 accuracy. Options:
    ``base_dir`` (where bundles go), ``max_bytes`` of data (1 GiB; metadata and a seed above), ``check_calls`` (level 4:
    how many calls to check; every one by default), ``minify`` ("auto": at once after capture), ``forward_only``,
    ``ignore_non_fp``, ``tolerance``, ``options`` (of the backend).
    """
    return Watch(backend, after=after, level=level, **options)


# ---- torch.compile ----


def settings_from_environment() -> tuple[str, int] | None:
    """(stage, level) of CUTAWAY_REPRO_AFTER and CUTAWAY_REPRO_LEVEL, or torch's names for them."""
    after_name = next((n for n in ("CUTAWAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER") if os.environ.get(n)), None)
    if after_name is None:
        return None
    stage = _repro._stage(os.environ[after_name], after_name)
    level_name = next((n for n in ("CUTAWAY_REPRO_LEVEL", "TORCHDYNAMO_REPRO_LEVEL") if os.environ.get(n)), None)
    level = os.environ[level_name] if level_name else "2"
    if level not in ("1", "2", "3", "4"):
        raise Error(f"{level_name} is {level!r}\n   because: a level is 1, 2, 3 or 4")
    return stage, int(level)


def _watch_inside(backend: Any) -> bool:
    return isinstance(backend, Watch) or isinstance(getattr(backend, "compiler_fn", None), Watch)


def is_plain(backend: Any) -> bool:
    """Whether it runs graphs as they are captured: nothing in it can go wrong, and nobody watches it."""
    return isinstance(backend, str) and bool(_native.backend_row(backend)["last_stage"] == "capture")


def install() -> None:
    """Takes the place of torch's own dumping: for graphs that we watch; for all when the environment says so."""
    from torch._dynamo import exc
    from torch._dynamo.repro import after_dynamo

    original = after_dynamo.wrap_backend_debug
    if getattr(original, "is_cutaway", False):
        return

    class Bare:
        """What torch puts around a backend, without its dumping."""

        def __init__(self, backend: Any, name: str | None) -> None:
            functools.update_wrapper(self, backend, updated=())
            self._torchdynamo_orig_backend = backend
            self._compiler_name = name
            self.__name__ = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None) or str(name)
            if hasattr(backend, "get_compiler_config"):
                self.get_compiler_config = backend.get_compiler_config

        def __call__(self, gm: torch.fx.GraphModule, example_inputs: Any, **keywords: Any) -> Any:
            return self._torchdynamo_orig_backend(gm, example_inputs, **keywords)

    @functools.wraps(original)
    def wrap_backend_debug(backend: Any, name: str | None) -> Any:
        if _watch_inside(backend):
            return Bare(backend, name)
        found = settings_from_environment()
        if found is None or _is_off() or is_plain(name):
            return original(backend, name)
        stage, level = found
        try:
            return Bare(Watch(backend, after=stage, level=level), name)
        except Error as problem:
            _failure.notice(f"{name} is not watched: {problem}")
            return original(backend, name)

    wrap_backend_debug.is_cutaway = True  # type: ignore[attr-defined]
    after_dynamo.wrap_backend_debug = wrap_backend_debug  # type: ignore[assignment]

    # torch.compile makes an exception of its own of what a backend raised; what we have noted there goes along.
    make = exc.BackendCompilerFailed.__init__

    @functools.wraps(make)
    def keep_notes(self: Any, backend_fn: Any, inner_exception: Any, *more: Any, **keywords: Any) -> None:
        make(self, backend_fn, inner_exception, *more, **keywords)
        for note in getattr(inner_exception, "__notes__", ()):
            self.add_note(note)
        if hasattr(inner_exception, "minifier_path"):
            self.minifier_path = inner_exception.minifier_path

    exc.BackendCompilerFailed.__init__ = keep_notes  # type: ignore[method-assign]
    _watch_exits()


def watch_backends(make: Callable[[Any], Watch], refused: Callable[[str, str], None]) -> None:
    """Every backend that torch.compile is given from now on is watched by what `make` makes of it.

    ``refused`` hears the name of a backend that cannot be, and why. `_observe_own` has the same for cutaway.compile.
    """
    from torch._dynamo.repro import after_dynamo

    install()
    plain = after_dynamo.wrap_backend_debug

    @functools.wraps(plain)
    def wrap_backend_debug(backend: Any, name: str | None) -> Any:
        if is_plain(name) or _watch_inside(backend):
            return plain(backend, name)
        try:
            return plain(make(backend), name)
        except Error as problem:
            refused(str(name), str(problem))
            return plain(backend, name)

    wrap_backend_debug.is_cutaway = True  # type: ignore[attr-defined]
    after_dynamo.wrap_backend_debug = wrap_backend_debug  # type: ignore[assignment]
