// Python text of repro.py. Not for use outside core/script. "@graph@" stands for the graph's function, "@mode@" for the tracing mode.
#pragma once

namespace cutaway::script {

inline constexpr const char* kReproUsage =
    "Exit status: 1 (or a signal) the failure shows,\n0 it does not, 3 another failure shows, 4 eager itself fails.";

inline constexpr const char* kCompileAfterCapture = R"py(

def compile_graph():
    options = {"options": OPTIONS} if OPTIONS else {}
    return torch.compile(@graph@, backend=BACKEND, fullgraph=True, dynamic=False, **options)
)py";

inline constexpr const char* kCompileAfterCaptureDynamic = R"py(

def compile_graph():
    options = {"options": OPTIONS} if OPTIONS else {}
    compiled = torch.compile(@graph@, backend=BACKEND, fullgraph=True, **options)

    def run_dynamic(*inputs):
        for i, dimensions in DYNAMIC.items():
            for d in dimensions:
                torch._dynamo.maybe_mark_dynamic(inputs[i], d)
        return compiled(*inputs)

    return run_dynamic
)py";

inline constexpr const char* kCompileInnerInductor = R"py(

def compile_graph():
    from torch._inductor.compile_fx import compile_fx_inner

    inputs = [t.detach() if isinstance(t, torch.Tensor) else t for t in make_inputs()]
    module = torch.fx.experimental.proxy_tensor.make_fx(@graph@, tracing_mode=@mode@)(*inputs)
    with torch._inductor.config.patch(OPTIONS):
        compiled = compile_fx_inner(module, inputs)
    return lambda *inputs: compiled(list(inputs))
)py";

inline constexpr const char* kCompileAfterAot = R"py(

def compile_graph():
    inputs = [t.detach() if isinstance(t, torch.Tensor) else t for t in make_inputs()]
    module = torch.fx.experimental.proxy_tensor.make_fx(@graph@, tracing_mode=@mode@)(*inputs)
    if BACKEND in ("eager", "aot_eager"):
        return module
    backend = torch._dynamo.lookup_backend(BACKEND) if isinstance(BACKEND, str) else BACKEND
    compiled = backend(module, inputs, **({"options": OPTIONS} if OPTIONS else {}))
    return (lambda *inputs: compiled(list(inputs))) if getattr(compiled, "_boxed_call", False) else compiled
)py";

inline constexpr const char* kRunForward = R"py(

def run(function, inputs):
    torch.manual_seed(SEED)
    return list(function(*inputs))
)py";

inline constexpr const char* kRunForwardBackward = R"py(

def run(function, inputs):
    """Forward, and backward where an output requires it; the outputs and the gradients."""
    torch.manual_seed(SEED)
    outputs = list(function(*inputs))
    if any(isinstance(t, torch.Tensor) and t.requires_grad for t in outputs):
        tensors = [t for t in outputs if isinstance(t, torch.Tensor)]
        sum(t.sum() / max(t.numel(), 1) for t in tensors).div(len(tensors)).backward()
    return outputs + [t.grad for t in inputs if isinstance(t, torch.Tensor) and t.is_leaf]
)py";

inline constexpr const char* kExceptionCheck = R"py(

def check():
    try:
        run(@graph@, make_inputs())
    except Exception:
        traceback.print_exc()
        print("eager itself fails", file=sys.stderr)
        return 4
    # patience
    try:
        run(compile_graph(), make_inputs())
    except BaseException as error:
        traceback.print_exc()
        while getattr(error, "inner_exception", None) is not None:  # torch.compile wraps what a backend raises
            error = error.inner_exception
        if EXPECTED not in (None, type(error).__name__):
            print(f"another failure: {type(error).__name__}, where {EXPECTED} was recorded", file=sys.stderr)
            return 3
        print(f"FAILS: {type(error).__name__}", file=sys.stderr)
        return 1
    print("no failure")
    return 0
)py";

inline constexpr const char* kWatchExit = R"py(

def end_process(status, leave=os._exit):
    print(f"FAILS: the process is ended with status {status}", file=sys.stderr, flush=True)
    leave(1 if f"exit {status}" == ENDING else 3)
)py";

inline constexpr const char* kRunProgram = R"py(

def run_program(at_compilation):
    """Runs the program up to its graph number COMPILATION, and calls at_compilation(its backend) there."""
    count, plain = 0, torch.compile

    def counting(model=None, *, backend="inductor", mode=None, options=None, compile_=plain, **keywords):
        if model is None:
            return lambda model: counting(model, backend=backend, mode=mode, options=options, compile_=compile_, **keywords)
        if backend == "eager":
            return compile_(model, backend=backend, **keywords)
        if backend == "inductor":
            take = torch._TorchCompileInductorWrapper(mode, options, keywords.get("dynamic"))
        else:
            found = torch._dynamo.lookup_backend(backend)
            more = {name: value for name, value in (("mode", mode), ("options", options)) if value}
            take = lambda gm, inputs: found(gm, inputs, **more)

        def count_and_take(gm, inputs):
            nonlocal count
            count += 1
            if count == COMPILATION:
                torch.compile = plain
                at_compilation(take)
            return take(gm, inputs)

        return compile_(model, backend=count_and_take, **keywords)

    torch.compile = counting
)py";

inline constexpr const char* kCountOwn = R"py(    import cutaway

    own = cutaway.compile
    cutaway.compile = lambda model=None, *, backend="eager", **keywords: counting(model, backend=backend, compile_=own, **keywords)
)py";
inline constexpr const char* kGiveInput = R"py(    with tempfile.TemporaryFile() as file:
        file.write(INPUT.encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
    sys.stdin = open(0, closefd=False)
)py";

inline constexpr const char* kExecProgram = R"py(    sys.argv[:] = [NAME, *ARGUMENTS]
    linecache.cache[NAME] = (len(PROGRAM), None, PROGRAM.splitlines(True), NAME)
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    main.__file__ = NAME
    exec(compile(PROGRAM, NAME, "exec"), vars(main))
)py";
inline constexpr const char* kExecModule = R"py(    sys.argv[1:] = ARGUMENTS
    sys.path.insert(0, "")
    runpy.run_module(NAME, run_name="__main__", alter_sys=True)
)py";

inline constexpr const char* kMainOfProgram = R"py(
if __name__ == "__main__":
    try:
        run_program(check_and_end)
    except BaseException:  # not the status of a failure that shows
        traceback.print_exc()
    print(f"{NAME} came to its end without compilation {COMPILATION}", file=sys.stderr)
    sys.exit(2)
)py";

inline constexpr const char* kStrictCheck = R"py(

def check():
    reference, again = run(@graph@, make_inputs()), run(@graph@, make_inputs())
    result = run(compile_graph(), make_inputs())
    status = 0
    for i, (a, b, c) in enumerate(zip(reference, again, result, strict=True)):
        if isinstance(a, torch.Tensor):
            if not torch.equal(a.nan_to_num(), b.nan_to_num()):
                print(f"result {i}: eager differs from itself", file=sys.stderr)
                return 4
            if not torch.equal(a.nan_to_num(), c.nan_to_num()) or not torch.equal(a.isnan(), c.isnan()):
                print(f"FAILS: result {i} differs, by {(a - c).abs().max().item()} at most", file=sys.stderr)
                status = 1
    return status
)py";

inline constexpr const char* kAccuracyCheck = R"py(

def wide(value):
    """Floating tensors and dtypes at double precision."""
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else torch.complex128 if value.is_complex else value
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach().to(wide(value.dtype)).requires_grad_(value.requires_grad)
    return value


def run_wide():
    """The graph at double precision, or None where it does not run so."""
    try:
        module = torch.fx.experimental.proxy_tensor.make_fx(@graph@)(*[t.detach() if isinstance(t, torch.Tensor) else t for t in make_inputs()])
        for node in module.graph.nodes:
            node.args, node.kwargs = torch.fx.node.map_aggregate(node.args, wide), torch.fx.node.map_aggregate(node.kwargs, wide)
        for name, value in list(vars(module).items()):
            setattr(module, name, wide(value))
        module.recompile()
        return run(module, [wide(t) for t in make_inputs()])
    except Exception:
        traceback.print_exc()
        print("there is no reference in double precision", file=sys.stderr)
        return None


def is_same(reference, result, exact, tolerance=1e-3):
    """Within the tolerance, or not much further from the exact result than eager is."""
    if not isinstance(reference, torch.Tensor) or not (reference.is_floating_point() or reference.is_complex()):
        return True
    if not isinstance(result, torch.Tensor) or result.shape != reference.shape:
        return False
    if torch.allclose(reference, result.to(reference.dtype), rtol=tolerance, atol=tolerance, equal_nan=True):
        return True
    if exact is None:
        return False
    error = lambda t: (t.to(exact.dtype) - exact).abs().square().mean().sqrt().item()
    factor = 3 if reference.numel() < 1000 or reference.dtype in (torch.float16, torch.bfloat16) else 2
    print(f"RMSE to double precision: {error(result)}, eager's {error(reference)}", file=sys.stderr)
    return error(result) <= factor * error(reference) + tolerance / 10


def check():
    reference, again = run(@graph@, make_inputs()), run(@graph@, make_inputs())
    exact = run_wide() or [None] * len(reference)
    if not all(is_same(a, b, c) for a, b, c in zip(reference, again, exact)):
        print("eager differs from itself", file=sys.stderr)
        return 4
    try:
        result = run(compile_graph(), make_inputs())
    except Exception:
        traceback.print_exc()
        print("another failure: an exception, where wrong numbers were recorded", file=sys.stderr)
        return 3
    wrong = [i for i in range(len(reference)) if not is_same(reference[i], result[i], exact[i])]
    print(f"FAILS: wrong numbers in results {wrong}" if wrong else "no failure", file=sys.stderr)
    return 1 if wrong else 0
)py";

}  // namespace cutaway::script
