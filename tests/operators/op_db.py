"""Every operator of torch's operator database through trace, import, print, parse and run, against eager bit for bit.

    python -m tests.operators.op_db --full --jobs 2          # everything; at most 15 minutes on two cores
    python -m tests.operators.op_db --jobs 2                 # the fixed tenth that `make test` runs
    python -m tests.operators.op_db --full --shard 0/4       # a quarter
    python -m tests.operators.op_db --only nn.functional.gelu --verbose
    python -m tests.operators.op_db --aot                    # ahead-of-time autograd instead (aot_op_db.py); a fixed part
    python -m tests.operators.op_db --aot --full --jobs 2    # all operators that have a backward
    python -m tests.operators.op_db --native --full --jobs 2 # the same with the kernels of the backend native
    python -m tests.operators.op_db --native --full --dtypes float32,bfloat16,float64,int64,bool   # forward alone where a dtype has no backward
    python -m tests.operators.op_db --native --device cuda   # the same on a card; what is refused there is not compared with the list
    python -m tests.operators.op_db --raises                 # capture, with arguments that raise (op_db_raises.py); a fixed part

Forward, and forward + backward where the operator has one, for float32 and one more dtype that it supports, at most 20
samples each. What cannot go this way is refused by name; op_db_refusals.txt lists every refusal with its reason,
and `--update` rewrites it. A failure (another result than eager's, another text after parsing, a crash) exits with 1.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import zlib

REFUSALS = pathlib.Path(__file__).with_name("op_db_refusals.txt")
AOT_REFUSALS = pathlib.Path(__file__).with_name("aot_op_db_refusals.txt")
RAISES_REFUSALS = pathlib.Path(__file__).with_name("op_db_raises_refusals.txt")
MAX_SAMPLES = 20
DEVICE = os.environ.get("CUTAWAY_TEST_DEVICE", "cpu")
SECONDS_PER_OPERATOR = 180
SEED = (
    42  # the database wraps random operators so that they draw from this seed; a trace has the draws, not the wrapper
)
# Outputs that no two runs share: only their metadata can be compared.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


def stable_hash(text: str) -> int:
    return zlib.crc32(text.encode())


# --- worker: operators in, one JSON line a case out ---


def operators():
    # The database lives in torch's test package, whose base class for golden tests comes from a package that torch does
    # not depend on. Nothing here uses that class.
    if importlib.util.find_spec("expecttest") is None:
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase = unittest.TestCase
    from torch.testing._internal.common_methods_invocations import op_db

    named = {}
    for op in op_db:
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        named.setdefault(name, op)
    return named


def chosen_dtypes(name, op):
    import torch

    supported = op.supported_dtypes(DEVICE)
    chosen = [torch.float32] if torch.float32 in supported else []
    others = sorted((d for d in supported if d != torch.float32), key=str)
    if others:
        chosen.append(others[stable_hash(name) % len(others)])
    return chosen


class Refused(Exception):
    """The case cannot go this way, and something said so by name."""


def first_line(error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    text = re.sub(r"^fx node \w+: ", "", text)
    because = next((line.split("because: ", 1)[1] for line in lines if line.startswith("because: ")), "")
    because = re.sub(r"(; )?at node '.*", "", because)
    return (text + (f" ({because})" if because else ""))[:180]


def bits_equal(a, b, metadata_only=False) -> str:
    """Empty when equal, else what differs."""
    import torch

    if isinstance(a, torch.Tensor) != isinstance(b, torch.Tensor):
        return f"{type(a).__name__} and {type(b).__name__}"
    if not isinstance(a, torch.Tensor):
        return "" if a == b or (a != a and b != b) else f"{a!r} and {b!r}"
    for what in ("dtype", "shape", "device", "layout"):
        if getattr(a, what) != getattr(b, what):
            return f"{what} {getattr(a, what)} and {getattr(b, what)}"
    if metadata_only:
        return ""
    if a.layout != torch.strided:
        return bits_equal(a.to_dense(), b.to_dense())
    a, b = (
        t.detach().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg().reshape(-1) for t in (a, b)
    )
    if not a.numel():
        return ""
    if a.dtype == torch.bool:
        return "" if torch.equal(a, b) else "values"
    if torch.equal(a.view(torch.uint8), b.view(torch.uint8)):
        return ""
    # A NaN has no agreed bits: the sign and payload may depend on the order of operands in the vector unit.
    differ = (a != b) & ~((a != a) & (b != b))
    return (
        ""
        if not differ.any()
        and torch.equal(
            torch.signbit(torch.view_as_real(a) if a.is_complex() else a),
            torch.signbit(torch.view_as_real(b) if b.is_complex() else b),
        )
        else f"{int(differ.sum())} of {a.numel()} values"
    )


def is_repeatable(function, fresh, expected):
    """Whether eager gives its result again after the allocator's free blocks have been filled with other bytes."""
    import torch
    from torch.utils import _pytree as pytree

    for byte in (0, 1, 0x7F):
        inputs = fresh()
        junk = [torch.full((size,), byte, dtype=torch.uint8) for size in range(1, 2049, 3) for _ in range(4)]
        del junk
        torch.manual_seed(SEED)
        if any(bits_equal(e, g) for e, g in zip(expected, pytree.tree_leaves(function(*inputs)), strict=True)):
            return False
    return True


def as_function(op, sample):
    """The call of a sample as a function of its tensors, these tensors without history, and which of them need gradients."""
    import torch
    from torch.utils import _pytree as pytree

    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    if any(leaves[i].layout != torch.strided for i in where):
        raise Refused("a sparse tensor is an input")
    tensors = [leaves[i].detach() for i in where]
    needs_grad = [leaves[i].requires_grad for i in where]

    def call(*flat):
        filled = list(leaves)
        for i, t in zip(where, flat, strict=True):
            filled[i] = t
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op.op(first, *args, **kwargs)

    return call, tensors, needs_grad


def run_case(name, op, sample, backward):
    """Returns nothing when the graph does what eager does; raises Refused, or AssertionError with the reason."""
    import cutaway
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree as pytree

    call, tensors, needs_grad = as_function(op, sample)
    cotangents = []
    if backward:

        def differentiable(out):
            out = sample.output_process_fn_grad(out)
            return [o for o in pytree.tree_leaves(out) if isinstance(o, torch.Tensor) and o.requires_grad]

        def function(*flat):
            count = len(tensors)
            flat, given = flat[:count], flat[count:]
            out = call(*flat)
            ends = differentiable(out)
            wanted = [t for t, g in zip(flat, needs_grad, strict=True) if g]
            grads = torch.autograd.grad(ends, wanted, given, allow_unused=True) if ends else []
            return pytree.tree_leaves(out), [g for g in grads if g is not None]

        def fresh():
            copies = cutaway.clone_keeping_aliases(tensors)
            copies = [t.requires_grad_(g) for t, g in zip(copies, needs_grad, strict=True)]
            return copies + [c.clone() for c in cotangents]

        torch.manual_seed(SEED)
        try:
            ends = differentiable(call(*fresh()))
        except Exception as e:
            raise Refused(f"eager raises {type(e).__name__}: {first_line(e)}") from None
        if not ends:
            return
        generator = torch.Generator().manual_seed(1)
        for e in ends:
            if e.layout != torch.strided:
                raise Refused("a sparse tensor is an output")
            cotangents.append(torch.randn(e.shape, generator=generator, dtype=torch.float64).to(e.dtype))
    else:

        def function(*flat):
            return pytree.tree_leaves(call(*flat))

        def fresh():
            return cutaway.clone_keeping_aliases(tensors)

    torch.manual_seed(SEED)
    try:
        expected = pytree.tree_leaves(function(*fresh()))
    except Exception as e:
        raise Refused(f"eager raises {type(e).__name__}: {first_line(e)}") from None
    try:
        torch.manual_seed(SEED)
        traced = make_fx(function)(*fresh())
    except Exception as e:
        raise Refused(f"make_fx raises {type(e).__name__}: {first_line(e)}") from None
    finally:
        torch._C._set_grad_enabled(True)

    try:
        graph = cutaway.Graph.from_fx(traced, fresh())
    except cutaway.Error as e:
        raise Refused(f"import: {first_line(e)}") from None
    text = str(graph)
    again = cutaway.Graph.parse(text)
    assert str(again) == text, "the text changes when it is parsed and printed"
    assert again.digest() == graph.digest(), "the digest changes when the text is parsed"
    again.lifted = graph.lifted

    torch.manual_seed(SEED)
    try:
        with torch.no_grad():
            got = pytree.tree_leaves(again.run(*(t.detach() for t in fresh())))
    except cutaway.Error as e:
        raise Refused(f"run: {first_line(e)}") from None
    assert len(got) == len(expected), f"{len(got)} outputs, eager has {len(expected)}"
    problems = [
        (i, bits_equal(e, g, name in UNINITIALISED)) for i, (e, g) in enumerate(zip(expected, got, strict=True))
    ]
    problems = [(i, p) for i, p in problems if p]
    if not problems:
        return
    # Whose fault? torch runs its own trace: when that differs from eager too, and we agree with it, the trace lost it.
    torch.manual_seed(SEED)
    theirs = pytree.tree_leaves(traced(*fresh()))
    if any(bits_equal(e, t) for e, t in zip(expected, theirs, strict=True)) and not any(
        bits_equal(t, g) for t, g in zip(theirs, got, strict=True)
    ):
        raise Refused("make_fx's own graph gives other numbers than eager")
    if not is_repeatable(function, fresh, expected):
        raise Refused("eager itself is not repeatable: it reads memory that nothing wrote")
    raise AssertionError("; ".join(f"output {i}: {p}" for i, p in problems))


def check_operator(name, op, verbose=False, aot=False):
    import warnings

    warnings.simplefilter("ignore")
    dtypes = chosen_dtypes(name, op)
    if aot:
        usable = op.supported_backward_dtypes(DEVICE) if op.supports_autograd else set()
        usable = {d for d in usable if str(d) != "torch.complex32"}  # eager lacks half of its kernels
        dtypes = [d for d in dtypes if d in usable] or sorted(usable & op.supported_dtypes(DEVICE), key=str)[:1]
        if named := os.environ.get("CUTAWAY_TEST_DTYPES"):
            import torch

            dtypes = [d for d in (getattr(torch, n) for n in named.split(",")) if d in op.supported_dtypes(DEVICE)]
    for dtype in dtypes:
        has_backward = op.supports_autograd and dtype in op.supported_backward_dtypes(DEVICE)
        for backward in (has_backward,) if aot else (False, True):
            if backward and not has_backward:
                continue
            passed, refused, failed = 0, collections.Counter(), []
            try:
                samples = list(itertools.islice(op.sample_inputs(DEVICE, dtype, requires_grad=backward), MAX_SAMPLES))
            except Exception as e:
                samples = []
                refused[f"no samples: {type(e).__name__}: {first_line(e)}"] += 1
            for number, sample in enumerate(samples):
                try:
                    if aot:
                        from tests.operators import aot_op_db

                        aot_op_db.run_case(name, op, sample, sys.modules[__name__])
                    else:
                        run_case(name, op, sample, backward)
                    passed += 1
                except Refused as e:
                    refused[str(e)] += 1
                except Exception as e:
                    failed.append(f"sample {number}: {type(e).__name__}: {first_line(e)}")
                    if verbose:
                        import traceback

                        traceback.print_exc()
            yield {
                "case": f"{name} {str(dtype).removeprefix('torch.')} {'backward' if backward else 'forward'}",
                "passed": passed,
                "refused": dict(refused),
                "failed": failed,
            }


def worker(names, verbose, aot, raises):
    import torch

    torch.set_num_threads(1)
    known = operators()
    for name in names:
        print(json.dumps({"begin": name}), flush=True)
        if raises:
            from tests.operators import op_db_raises

            results = op_db_raises.check_operator(name, known[name], sys.modules[__name__], verbose)
        else:
            results = check_operator(name, known[name], verbose, aot)
        for result in results:
            print(json.dumps(result), flush=True)
        print(json.dumps({"end": name}), flush=True)


# --- parent: hands operators to workers, survives their deaths ---


def run_workers(names, jobs, flags, say):
    results, lock, queue = [], threading.Lock(), list(reversed(names))

    def serve():
        while True:
            with lock:
                batch = [queue.pop() for _ in range(min(len(queue), 25))]
            if not batch:
                return
            while batch:
                batch = run_batch(batch)

    def run_batch(batch):
        """What is left when the worker died."""
        with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.operators.op_db", "--worker", json.dumps(batch), *flags],
                stdout=subprocess.PIPE,
                stderr=None if "--verbose" in flags else log,
                text=True,
                # Fresh memory is zero: torch's lstsq hands LAPACK pivots that nothing wrote, and they matter.
                env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MALLOC_PERTURB_": "255"},
            )
            current, timer = None, None
            left = list(batch)
            assert process.stdout
            for line in process.stdout:
                if not line.startswith("{"):
                    continue
                record = json.loads(line)
                if "begin" in record:
                    current = record["begin"]
                    timer = threading.Timer(SECONDS_PER_OPERATOR, process.kill)
                    timer.start()
                elif "end" in record:
                    timer.cancel()
                    left.remove(record["end"])
                    current = None
                else:
                    with lock:
                        results.append(record)
                    if record["failed"]:
                        say(f"FAILED {record['case']}: {record['failed'][0]}")
            status = process.wait()
            if timer:
                timer.cancel()
            if status == 0 and not left:
                return []
            log.seek(0)
            tail = log.read().strip().splitlines()[-1:] or [""]
            name = current or left[0]
            with lock:
                results.append(
                    {
                        "case": f"{name} - -",
                        "passed": 0,
                        "refused": {},
                        "failed": [f"the worker died with status {status}: {tail[0]}"],
                    }
                )
            say(f"FAILED {name}: the worker died with status {status}: {tail[0]}")
            return [n for n in left if n != name]

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(results, key=lambda r: r["case"])


def as_listed(reason):
    """Where eager itself raises, its words differ from torch to torch and with a GPU: that it raises is what counts."""
    return "eager raises" if reason.startswith("eager raises ") else reason


def read_refusals(path):
    known = {}
    if path.exists():
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                case, reason = line.split(": ", 1)
                known.setdefault(case, set()).add(as_listed(reason))
    return known


def write_refusals(results, path):
    lines = [
        f"# What tests/operators/op_db.py{ {AOT_REFUSALS: ' --aot', RAISES_REFUSALS: ' --raises'}.get(path, '') } refuses, case by case, with the reason. Written by it with `--full --update`."
    ]
    for r in results:
        lines += [f"{r['case']}: {reason}" for reason in sorted(r["refused"])]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every operator, not the fixed tenth")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shard", default="0/1", help="i/n: the i-th of n parts")
    parser.add_argument("--only", action="append", help="these operators alone")
    parser.add_argument("--update", action="store_true", help="rewrite the list of refusals (full run only)")
    parser.add_argument("--verbose", action="store_true", help="tracebacks of failures")
    parser.add_argument("--aot", action="store_true", help="ahead-of-time autograd, for operators with a backward")
    parser.add_argument(
        "--raises", action="store_true", help="compiled, on valid and invalid arguments, in a try block"
    )
    parser.add_argument("--native", action="store_true", help="as --aot, with kernels of the backend native")
    parser.add_argument("--dtypes", default="", help="with --native: these dtypes, where the operator has them; refusals are not compared")  # fmt: skip
    parser.add_argument("--device", default=DEVICE, help="cpu or cuda")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["CUTAWAY_TEST_DEVICE"] = options.device
    if options.dtypes:
        os.environ["CUTAWAY_TEST_DTYPES"] = options.dtypes
    if options.native:
        options.aot = True
        os.environ["CUTAWAY_TEST_BACKEND"] = "native:wait"
    if options.worker:
        worker(json.loads(options.worker), options.verbose, options.aot, options.raises)
        return 0

    refusals = AOT_REFUSALS if options.aot else RAISES_REFUSALS if options.raises else REFUSALS
    names = sorted(operators())
    if options.only:
        unknown = set(options.only) - set(names)
        if unknown:
            parser.error(f"no operator is called {', '.join(sorted(unknown))}")
        names = [n for n in names if n in options.only]
    elif not options.full:
        names = [n for n in names if stable_hash(n) % (16 if options.aot else 40 if options.raises else 10) == 0]
    index, count = (int(x) for x in options.shard.split("/"))
    names = [n for n in names if stable_hash("shard " + n) % count == index]

    start = time.monotonic()
    flags = [f"--{flag}" for flag in ("verbose", "aot", "raises") if getattr(options, flag)]
    results = run_workers(names, options.jobs, flags, lambda text: print(text, flush=True))
    if options.update:
        if not options.full or count != 1:
            parser.error("--update needs the full run")
        write_refusals(results, refusals)

    known = read_refusals(refusals)
    unlisted = [
        f"{r['case']}: {reason}"
        for r in results
        for reason in r["refused"]
        if as_listed(reason) not in known.get(r["case"], ())
    ]
    counts = options.device == "cpu" and not options.dtypes
    failed = [r for r in results if r["failed"]]
    wholly = [r for r in results if not r["failed"] and not r["refused"]]
    partly = [r for r in results if not r["failed"] and r["refused"]]
    samples = collections.Counter()
    for r in results:
        samples.update(passed=r["passed"], refused=sum(r["refused"].values()), failed=len(r["failed"]))
    print(f"{len(names)} operators, {len(results)} cases, {time.monotonic() - start:.0f} s")
    print(f"{'':10} {'cases':>8} {'samples':>8}")
    for word, cases in (("passed", wholly), ("refused", partly), ("failed", failed)):
        print(f"{word:10} {len(cases):8} {samples[word]:8}")
    by_dtype = collections.defaultdict(collections.Counter)
    for r in results:
        dtype = r["case"].split()[-2]
        by_dtype[dtype].update(cases=1, passed=r["passed"], refused=sum(r["refused"].values()), failed=len(r["failed"]))
    if options.dtypes:
        print(f"{'dtype':10} {'cases':>8} {'passed':>8} {'refused':>8} {'failed':>8}")
        for dtype, row in sorted(by_dtype.items()):
            print(f"{dtype:10} " + " ".join(f"{row[word]:8}" for word in ("cases", "passed", "refused", "failed")))
    reasons = collections.Counter()
    for r in results:
        for reason, count in r["refused"].items():
            reasons[reason if options.aot else reason.split(":")[0]] += count
    share = samples["refused"] / max(1, sum(samples.values()))
    print(f"{share:.1%} of the samples refused, mostly: " + "; ".join(f"{c} {r}" for r, c in reasons.most_common(5)))
    for line in unlisted if counts else []:
        print(f"refused, and not listed in {refusals.name}: {line}")
    for r in failed:
        print(f"failed: {r['case']}: {len(r['failed'])} of {len(r['failed']) + r['passed']}: {r['failed'][0]}")
    return 1 if failed or (unlisted and counts) else 0


if __name__ == "__main__":
    sys.exit(main())
