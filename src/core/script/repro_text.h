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

inline constexpr const char* kCompileByHand = R"py(

def compile_graph():
    """How many outputs there are shows in what the backend returns: behind torch.compile one too many is not seen."""
    seen = []

    def take(module, inputs):
        seen.append(module)
        return module.forward

    torch.compile(@graph@, backend=take, fullgraph=True, dynamic=False)(*make_inputs())
    backend = torch._dynamo.lookup_backend(BACKEND) if isinstance(BACKEND, str) else BACKEND
    return backend(seen[0], make_inputs(), **({"options": OPTIONS} if OPTIONS else {}))
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

inline constexpr const char* kRandomStart = R"py(

def start_random():
    """Random numbers begin where they did when it failed."""
    torch.manual_seed(SEED)
    for device, state in GENERATORS.items():
        state = torch.frombuffer(bytearray.fromhex(state), dtype=torch.uint8)
        torch.set_rng_state(state) if device == "cpu" else torch.cuda.set_rng_state(state, device)


def tensors_in(value):
    if isinstance(value, (list, tuple)):
        return [t for part in value for t in tensors_in(part)]
    return [value] if isinstance(value, torch.Tensor) else []
)py";

inline constexpr const char* kRunForward = R"py(

def run(function, inputs):
    """What a run leaves behind: outputs, gradients (none here), inputs."""
    start_random()
    given = tensors_in(inputs)
    return list(function(*inputs)), [], given
)py";

// "@backward@" stands for the state around the backward pass.
inline constexpr const char* kRunForwardBackward = R"py(

def cotangent(output, position):
    """The gradient that an output is given: quarters of -7 to 7 without 0, fixed by its position."""
    count = output.numel() * (2 if output.is_complex() else 1)
    drawn = torch.empty(0, dtype=torch.int64).set_(random_storage(8 * count, torch.int64, "cpu", 20240 + position, range=(0, 14)))
    numbers = (drawn - 7 + (drawn >= 7)).double() / 4
    numbers = torch.view_as_complex(numbers.view(-1, 2)) if output.is_complex() else numbers
    return numbers.view(output.shape).to(output.dtype).to(output.device)


def run(function, inputs):
    """What a run leaves behind, backward included where an output requires it: outputs, gradients, inputs."""
    start_random()
    given = tensors_in(inputs)
    wanted = [t for t in given if t.requires_grad]
    for t in wanted:
        t.retain_grad()
    outputs = list(function(*inputs))
    roots = [(i, t if t.layout == torch.strided else t.to_dense()) for i, t in enumerate(tensors_in(outputs)) if t.requires_grad]
    if roots:
        with @backward@:
            torch.autograd.backward([t for _, t in roots], [cotangent(t, i) for i, t in roots])
    return outputs, [torch.zeros_like(t) if t.grad is None else t.grad for t in wanted], given
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

// The rule of diagnosis/compare/judge.h in Python; tests/flows/test_one_verdict.py holds the two together.
inline constexpr const char* kAccuracyCheck = R"py(

def wide(value):
    """Floating tensors and dtypes at double precision."""
    if isinstance(value, torch.dtype):
        return torch.float64 if value.is_floating_point else torch.complex128 if value.is_complex else value
    if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
        return value.detach().to(wide(value.dtype)).requires_grad_(value.requires_grad)
    return value


class AtDoublePrecision(torch.fx.Interpreter):
    def run_node(self, node):
        if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
            return super().run_node(node)
        # At another precision other numbers would be drawn.
        narrow = {id(self.env[n]): n.meta["val"].dtype for n in node.all_input_nodes if isinstance(self.env[n], torch.Tensor)}
        args, kwargs = torch.utils._pytree.tree_map(lambda v: v.to(narrow[id(v)]) if id(v) in narrow else v, self.fetch_args_kwargs_from_env(node))
        return torch.utils._pytree.tree_map(lambda v: v.to(wide(v.dtype)) if isinstance(v, torch.Tensor) else v, node.target(*args, **kwargs))


def run_wide():
    """The graph at double precision, or None where it does not run so."""
    try:
        module = torch.fx.experimental.proxy_tensor.make_fx(@graph@)(*[t.detach() if isinstance(t, torch.Tensor) else t for t in make_inputs()])
        for node in module.graph.nodes:
            if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
                node.args, node.kwargs = torch.fx.node.map_aggregate(node.args, wide), torch.fx.node.map_aggregate(node.kwargs, wide)
        for name, value in list(vars(module).items()):
            setattr(module, name, wide(value))
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False) if torch.cuda.is_available() else contextlib.nullcontext():
            return run(AtDoublePrecision(module).run, [wide(t) for t in make_inputs()])
    except Exception:
        traceback.print_exc()
        print("there is no reference in double precision", file=sys.stderr)
        return None


def leaves(results):
    outputs, gradients, inputs = results
    flat = lambda value: [v for part in value for v in flat(part)] if isinstance(value, (list, tuple)) else [value]
    named = [(f"output {i}", "values", value) for i, value in enumerate(flat(outputs))]
    named += [(f"gradient {i}", "gradients", value) for i, value in enumerate(gradients)]
    return named + [(f"input {i} after the run", "inputs", value) for i, value in enumerate(inputs)]


def parts(t):
    """Real numbers at double precision."""
    t = t.detach().to_dense() if t.layout != torch.strided else t.detach()
    return torch.view_as_real(t.to(torch.complex128).resolve_conj()) if t.is_complex() else t.double()


def is_as(x, y):
    return (x == y) | (x.isnan() & y.isnan())


def magnitude(x, like):
    return x.norm(dim=-1) if like.is_complex() else x.abs()


def compare(a, b, exact):
    """Why b is not as good as a, as (what, message); None: it is. NaN and infinities first, errors over the finite rest."""
    if isinstance(a, float):
        a, b, exact = torch.tensor(a), torch.tensor(b) if isinstance(b, float) else b, torch.tensor(exact).double() if isinstance(exact, float) else None
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return None if type(a) is type(b) and a == b else ("values", f"{a!r} became {b!r}")
    for what in ("layout", "device", "dtype", "shape"):
        if getattr(a, what) != getattr(b, what):
            return what, f"another {what}: {getattr(a, what)} became {getattr(b, what)}"
    usable = isinstance(exact, torch.Tensor) and exact.shape == a.shape and exact.is_complex() == a.is_complex()
    if not a.is_floating_point() and not a.is_complex():
        differs = a.long() != b.long()
        if STRICT or not usable or exact.dtype != a.dtype or (differs & (exact.long() == a.long())).any():
            return (None, f"{int(differs.sum())} of {a.numel()} elements differ") if differs.any() else None
        return None
    x, y = parts(a), parts(b)
    if STRICT:
        return None if is_as(x, y).all() else (None, f"the largest difference is {(x - y).nan_to_num().abs().max().item()}")
    finite = x.isfinite() & y.isfinite()
    odd = ~finite & ~is_as(x, y)
    if usable:
        z, rounded = parts(exact), parts(exact.to(a.dtype))
        agrees = torch.where(y.isfinite() & rounded.isfinite(), (y - rounded).abs() <= 4e-2 + 4e-2 * rounded.abs(), is_as(y, rounded))
        odd &= ~agrees & torch.where(x.isfinite(), rounded.isfinite(), is_as(x, rounded))
    if odd.any():
        return None, f"NaN and infinities differ in {int(odd.sum())} places"
    x, y = torch.where(finite, x, 0), torch.where(finite, y, 0)
    narrow = lambda t: torch.view_as_complex(t.contiguous()).to(a.dtype) if a.is_complex() else t.to(a.dtype)
    far = ~torch.isclose(narrow(x), narrow(y), rtol=TOLERANCE, atol=TOLERANCE)
    if not far.any():
        return None
    message = f"{int(far.sum())} of {far.numel()} elements are off, by {magnitude(x - y, a).max().item()} at most"
    if not usable:
        return None, message
    z = torch.where(finite, torch.where(rounded.isfinite(), z, x), 0)
    rms = lambda t: (t.square().sum() / max(finite.sum().item(), 1) * (2 if a.is_complex() else 1)).sqrt().item()
    error_a, error_b, size = rms(x - z), rms(y - z), rms(z)
    small = exact.numel() < 1000 or (a.dim() == 4 and a.shape[2:] == (1, 1)) or TOLERANCE >= 2e-2 or a.dtype in (torch.float16, torch.bfloat16)
    factor = 10 if error_a >= 0.1 * size and error_a > 0 else 3 if small else 2
    message += f"; RMSE to double precision is {error_b}, eager's {error_a}"
    if not error_b <= factor * error_a + TOLERANCE / 10:
        return None, message
    worst_a, worst_b = (magnitude(torch.where(finite & rounded.isfinite(), t - z, 0), a).max().item() for t in (x, y))
    return None if worst_b <= 10 * worst_a else (None, f"{message}; the largest error is {worst_b}, eager's {worst_a}")


def shared(results):
    """What each output shares memory with: inputs, and outputs before it."""
    memory = lambda t: t.untyped_storage().data_ptr() if t.layout == torch.strided and t.numel() else 0
    outputs, inputs = tensors_in(results[0]), results[2]
    known = [("input", i, memory(t)) for i, t in enumerate(inputs)] + [("output", i, memory(t)) for i, t in enumerate(outputs)]
    return [[k[:2] for k in known[: len(inputs) + i] if k[2] and k[2] == memory(t)] for i, t in enumerate(outputs)]


def differences(reference, result, exact):
    """What differs, in a fixed order, as (name, what, message); the first one names the failure."""
    a, b, c = leaves(reference), leaves(result), leaves(exact) if exact else []
    if len(a) != len(b):
        return [("outputs", "structure", f"{len(a)} values became {len(b)}")]
    found = []
    for i, (name, what, value) in enumerate(a):
        problem = compare(value, b[i][2], c[i][2] if len(c) == len(a) else None)
        if problem:
            dtype = str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else ""
            found.append((name, problem[0] or f"{what} of {dtype}", problem[1]))
    if SEES_LAYOUT:
        for i, (x, y) in enumerate(zip(tensors_in(reference[0]), tensors_in(result[0]))):
            if x.shape != y.shape or x.dtype != y.dtype:
                continue
            if x.numel() and x.layout == y.layout == torch.strided and any(n > 1 and s != t for n, s, t in zip(x.shape, x.stride(), y.stride())):
                found.append((f"output {i}", "strides", f"other strides: {x.stride()} became {y.stride()}"))
            if any(t.requires_grad for t in tensors_in(reference[0])) and x.requires_grad != y.requires_grad:
                found.append((f"output {i}", "history", f"requires_grad became {y.requires_grad}"))
            if shared(reference)[i] != shared(result)[i]:
                found.append((f"output {i}", "aliasing", f"shared memory with {shared(reference)[i]}, now with {shared(result)[i]}"))
    return found


def nudged(inputs, round):
    """The inputs with every floating number moved to a neighbour, chosen by the number itself; numbers with few digits stay."""
    done = set()
    for t in tensors_in(inputs):
        real = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}.get(t.dtype, t.dtype)
        known = {torch.float32: (torch.int32, 23), torch.float64: (torch.int64, 52), torch.float16: (torch.int16, 10), torch.bfloat16: (torch.int16, 7)}
        if real not in known or t.layout != torch.strided or t.untyped_storage().data_ptr() in done:
            continue
        done.add(t.untyped_storage().data_ptr())
        integer, mantissa = known[real]
        bits = torch.empty(0, dtype=integer, device=t.device).set_(t.untyped_storage())
        width = 8 * integer.itemsize
        value = bits.long() & ((1 << width) - 1 if width < 64 else -1)
        size, infinity = value & ((1 << (width - 1)) - 1), ((1 << (width - 1)) - 1) & ~((1 << mantissa) - 1)
        moves = (value & ((1 << ((mantissa + 1) // 2)) - 1) != 0) & (size < infinity)
        up = (mix(mix(value) + round) & 1 != 0) & (size + 1 < infinity)
        bits += torch.where(moves, torch.where(up, 1, -1), 0).to(integer)
    return inputs


def is_excused(a, b, moved):
    """No further from eager than eager is from itself when the last bits of its inputs change."""
    def distance(t):
        if not a.is_floating_point() and not a.is_complex():
            return 0.0, 0.0, int((a.long() != t.long()).sum())
        x, y = parts(a), parts(t)
        finite = x.isfinite() & y.isfinite()
        d = torch.where(finite, x - y, 0)
        count = max(finite.sum().item(), 1) / (2 if a.is_complex() else 1)
        return (d.square().sum() / count).sqrt().item(), magnitude(d, a).max().item() if d.numel() else 0.0, int((~finite & ~is_as(x, y)).sum())

    off, moves = distance(b), [distance(t) for t in moved]
    most = [max((m[i] for m in moves), default=0) for i in range(3)]
    return off[0] <= 3 * most[0] and off[1] <= 10 * most[1] and off[2] <= 3 * most[2]


def check():
    reference, again = run(@graph@, make_inputs()), run(@graph@, make_inputs())
    for name, _, message in differences(reference, again, None):
        print(f"eager differs from itself: {name}: {message}", file=sys.stderr)
        return 4
    exact = None if STRICT else run_wide()
    try:
        result = run(compile_graph(), make_inputs())
    except Exception:
        traceback.print_exc()
        print("another failure: an exception, where wrong numbers were recorded", file=sys.stderr)
        return 3
    found = differences(reference, result, exact)
    if found and not STRICT and all(" of " in what for _, what, _ in found):
        moved = [leaves(run(@graph@, nudged(make_inputs(), round))) for round in range(4)]
        a, b = leaves(reference), leaves(result)
        place = {name: i for i, (name, _, _) in enumerate(a)}
        found = [f for f in found if not is_excused(a[place[f[0]]][2], b[place[f[0]]][2], [m[place[f[0]]][2] for m in moved])]
    for name, what, message in found:
        print(f"FAILS: {name}: {what}: {message}", file=sys.stderr)
    if found and EXPECTED not in (None, found[0][1]):
        print(f"another failure: {found[0][1]}, where {EXPECTED} was recorded", file=sys.stderr)
        return 3
    if not found:
        print("no failure")
    return 1 if found else 0
)py";

}  // namespace cutaway::script
