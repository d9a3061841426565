"""Looks for programs that Inductor computes otherwise than eager: random operators on odd values.

    python -m tests.flows.debugger.inductor_search [--minutes 30] [--first SEED] [--keep FOLDER]

A program is a straight line of operators over a few tensors of all dtypes, whose values are NaN, infinities, -0.0, denormals, huge and
small integers, ties. It is compiled as a whole and compared by the rule of every command (`cutaway.same`, with fp64). What differs is cut
to the statements that the wrong value needs, run again alone, and kept as a script for `cutaway triage`, one for each (operator, dtype,
way to differ). tests/flows/debugger/inductor holds those that were chosen; docs/inductor_differences.md tells of them.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import types
import warnings
from typing import Any

FLOATS = ("float32", "float32", "float64", "bfloat16", "float16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
FLOAT_VALUES = """nan inf -inf 0.0 -0.0 1.0 -1.0 0.5 -0.5 1.5 2.5 -2.5 3.0 1e-3 1e-40 -1e-40 1e-45 6e-8 1e4 65504.0 3e38 -3e38 255.5 256.0 -129.0
 2147483648.0 9.3e18 -9.3e18 1e20 0.1 7.0 -7.0 88.8 -104.0 1e-6 0.9999999 2.0 4.0""".split()
INTEGER_VALUES = """0 1 -1 2 -2 3 -3 5 7 -7 8 31 32 33 63 64 100 127 128 -128 255 256 32767 -32768 65535 2147483647 -2147483648 4294967296
 9223372036854775807 -9223372036854775808 9007199254740993""".split()

UNARY = """neg abs sign sgn floor ceil round trunc frac exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh
 acosh atanh erf erfc erfinv lgamma digamma sigmoid relu isnan isinf isfinite signbit logical_not bitwise_not nan_to_num angle deg2rad rad2deg
 reciprocal square positive isposinf isneginf logit""".split()
SPECIAL = "entr ndtr ndtri i0 i0e i1 i1e log_ndtr erfcx bessel_j0 bessel_j1 modified_bessel_i0 modified_bessel_k0 spherical_bessel_j0 sinc psi".split()
NEURAL = """gelu(X) gelu(X,approximate='tanh') silu(X) mish(X) softplus(X) softplus(X,beta=3,threshold=2) elu(X) selu(X) celu(X,alpha=0.3) hardswish(X)
 hardsigmoid(X) hardtanh(X,-0.5,0.25) relu6(X) leaky_relu(X,-0.5) logsigmoid(X) softsign(X) tanhshrink(X) softshrink(X,0.3) hardshrink(X,0.5)
 threshold(X,0.1,-7.0) softmax(X,-1) log_softmax(X,0) softmin(X,-1) normalize(X,dim=-1) layer_norm(X,X.shape[-1:]) glu(X[:,:4],-1)
 pad(X,(1,2),mode='constant',value=-0.0) pad(X,(1,1),mode='reflect') pad(X,(2,1),mode='replicate') one_hot(X.long()%5,5)""".split(
    "\n"
)
NEURAL = [word for line in NEURAL for word in line.split()]
BINARY = """add sub mul div floor_divide remainder fmod pow maximum minimum fmax fmin atan2 hypot copysign nextafter ldexp logaddexp logaddexp2 xlogy heaviside
 eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor gcd lcm true_divide
 rsub float_power""".split()
SHAPED = """X.sum() X.sum(-1) X.sum(0,dtype=torch.int8) X.prod() X.prod(-1) X.mean(-1) X.amax(-1) X.amin(0) X.argmax() X.argmax(-1) X.argmin(0) X.max(-1) X.min(0)
 X.any(-1) X.all() X.var(-1) X.std(0) X.var(-1,correction=0) X.logsumexp(-1) X.cumsum(-1) X.cumprod(0) X.cummax(-1) X.cummin(0) X.logcumsumexp(-1)
 X.norm() X.norm(p=0) X.norm(p=float('inf'),dim=-1) X.median(-1) X.nansum(-1) X.nanmean(-1) X.nanmedian() X.count_nonzero(-1) X.aminmax() X.sort(-1,stable=True)
 X.topk(2,-1) X.diff() X.flip(-1) X.roll(1,0) X.t() X.tril() X.triu(1) X.diagonal() X.unfold(-1,2,1) X.repeat(2,1) X[::2] X[:,1:] X[:0] X[:0].sum() X[:0].prod(0)
 X[:0].any() X[:0].mean() X.reshape(-1)[1:] X.t().contiguous() X.expand(2,*X.shape) X.unique() X.clone() X.trace() X.cov() X.renorm(2,0,1.0) X.logsumexp((0,1))
 X.clamp(-1,1) X.clamp(min=2) X.clamp(3,1) X.clamp(max=float('nan')) X.clip(0.5) X.softmax(-1,dtype=torch.float64) X.to(torch.float32).argsort(-1,stable=True)
 X.masked_fill(X>0,-1) X.masked_fill(X!=X,0) X.where(X>0,0) X.round(decimals=2) X.round(decimals=-1) X.nan_to_num(1.0,2.0,-2.0) X.new_full((2,),300) X.fill_diagonal_(3)
 X.is_contiguous() X.mul(2).is_contiguous() X.std(unbiased=False) X.dist(X+1) X.kthvalue(2) X.mode(-1) X.quantile(0.5) X.frexp() X.histc(4) X.bincount() X.trapezoid()
 X.cross(X) X.vander() X.select(0,-1) X.narrow(1,1,2) X.index_select(0,torch.tensor([1,0,1])) X.gather(1,torch.zeros(2,2,dtype=torch.long)) X.cumulative_trapezoid()
 X.scatter_add(1,torch.zeros(3,5,dtype=torch.long),X) X.index_add(0,torch.tensor([0,0,0]),X) X.put(torch.tensor([0,0]),X.reshape(-1)[:2]) X.view_as(X) X.sgn() X.sinc()
 X.masked_scatter(X>0,X) X.rot90() X.movedim(0,1) X.corrcoef() X.addcmul(X,X,value=3) X.addcdiv(X,X,value=-1) X.lerp(X+1,0.3) X.baddbmm X.isin(X[0])""".split()
SCALARS = (
    "0 1 -1 2 -2 3 -3 7 0.5 -0.5 1.5 -1.0 2.0 1e-3 1e10 255 -128 31 63 True float('nan') float('inf') -0.0".split()
)
FORMS = "X+K X-K K-X X*K X/K K/X X//K K//X X%K K%X X**K K**X X>>K X<<K X&K X|K X^K X>K X==K X<=K".split()
CASTS = "float32 float64 bfloat16 float16 int64 int32 int16 int8 uint8 bool".split()


def _values(random_: random.Random, dtype: str, count: int) -> str:
    if dtype == "bool":
        return ", ".join(random_.choice(("True", "False")) for _ in range(count))
    if dtype in INTEGERS:
        bits = {"int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8}[dtype]
        low, high = (0, 255) if dtype == "uint8" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return ", ".join(random_.choice([v for v in INTEGER_VALUES if low <= int(v) <= high]) for _ in range(count))
    plain = random_.random() < 0.4
    return ", ".join(
        f"{random_.uniform(-3, 3):.3g}"
        if plain
        else re.sub(r"nan|-?inf", lambda m: f"float('{m[0]}')", random_.choice(FLOAT_VALUES))
        for _ in range(count)
    )


class Program:
    """Inputs and statements as text; `names` are those that may be used."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs: dict[str, str] = {}
        self.statements: list[tuple[str, str]] = []
        for name in "abcd":
            dtype = self.random.choice((*FLOATS, *FLOATS, *INTEGERS, *INTEGERS, "bool"))
            self.inputs[name] = f"torch.tensor([{_values(self.random, dtype, 15)}], dtype=torch.{dtype}).reshape(3, 5)"

    def expression(self, names: list[str]) -> str:
        pick = self.random.choice
        x, y, roll = pick(names), pick(names), self.random.random()
        if roll < 0.2:
            return f"torch.{pick(UNARY)}({x})"
        if roll < 0.25:
            return f"torch.special.{pick(SPECIAL)}({x})"
        if roll < 0.33:
            return "F." + re.sub(r"\bX\b", x, pick(NEURAL))
        if roll < 0.5:
            word = pick(BINARY)
            rounding = pick(("", ", rounding_mode='floor'", ", rounding_mode='trunc'")) if word == "div" else ""
            return f"torch.{word}({x}, {y}{rounding})"
        if roll < 0.62:
            return pick(FORMS).replace("X", x).replace("K", pick(SCALARS))
        if roll < 0.75:
            return f"{x}.to(torch.{pick(CASTS)})"
        if roll < 0.79:
            return f"torch.where({x} > 0, {y}, {pick((x, y, '0', '-1.5'))})"
        if roll < 0.82:
            return f"torch.cat([{x}, {y}])"
        return re.sub(r"\bX\b", x, pick(SHAPED))


def text_of(inputs: dict[str, str], statements: list[tuple[str, str]], outputs: list[str]) -> str:
    body = "".join(f"    {name} = {value}\n" for name, value in statements)
    made = ", ".join(inputs.values())
    return (
        "import torch\nimport torch.nn.functional as F\n\n\n"
        f"def program({', '.join(inputs)}):\n{body}    return ({', '.join(outputs)},)\n\n\n"
        f"def inputs():\n    return [{made}]\n"
    )


def make(seed: int, count: int = 14) -> tuple[dict[str, str], list[tuple[str, str]], list[str]]:
    """Statements that eager can run; every second value is an output."""
    import torch

    program = Program(seed)
    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    for name, value in program.inputs.items():
        scope[name] = eval(value, scope)  # noqa: S307
    names = list(program.inputs)
    for _ in range(20 * count):
        if len(program.statements) == count:
            break
        value = program.expression(names)
        try:
            before = {n: scope[n].clone() for n in names}
            result = eval(value, scope)  # noqa: S307
            for n in names:
                if not torch.equal(scope[n].nan_to_num(), before[n].nan_to_num()):
                    raise ValueError  # a method that writes; views would go with it
        except Exception:
            for n in names:
                scope[n] = before[n]
            continue
        name = f"v{len(program.statements)}"
        if isinstance(result, torch.Tensor):
            scope[name] = result
            if result.dim() == 2 and result.numel() <= 64 and result.is_contiguous():
                names.append(name)
        elif not isinstance(result, (tuple, bool, int)):
            continue
        program.statements.append((name, value))
    outputs = [n for n, _ in program.statements if program.random.random() < 0.6 or n not in names]
    return program.inputs, program.statements, outputs


def _flat(values: Any) -> list[Any]:
    return [v for value in values for v in (value if isinstance(value, tuple) else (value,))]


def differences(text: str, outputs: list[str]) -> list[tuple[str, str]]:
    """(output, how it differs) of a program compiled by Inductor; ("", …) where the whole raises."""
    import cutaway
    import torch

    module = types.ModuleType("program")
    exec(compile(text, "program.py", "exec"), module.__dict__)  # noqa: S102
    torch._dynamo.reset()

    def wide(v: Any) -> Any:
        return v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v

    eager = module.program(*module.inputs())
    try:
        fp64: Any = module.program(*map(wide, module.inputs()))
    except Exception:
        fp64 = eager
    try:
        compiled = torch.compile(module.program, backend="inductor", dynamic=False)(*module.inputs())
    except Exception as error:
        return [("", f"raises {type(error).__name__}: {str(error).strip().splitlines()[0][:160]}")]
    found = []
    for name, a, b, c in zip(outputs, eager, compiled, fp64, strict=True):
        for left, right, exact in zip(_flat([a]), _flat([b]), _flat([c]), strict=True):
            if not isinstance(left, torch.Tensor):
                if left != right:
                    found.append((name, f"{left} is {right}"))
                continue
            exact = exact if isinstance(exact, torch.Tensor) and exact.shape == left.shape else left.double()
            verdict = cutaway.same(left, right, exact, tol=1e-3, equal_nan=True, exact_shape=True, rules="cutaway")
            if not verdict:
                found.append((name, f"{left.dtype}: {verdict.reason or verdict.outcome}"))
                break
    return found


def needed(statements: list[tuple[str, str]], output: str) -> list[tuple[str, str]]:
    wanted, kept = {output}, []
    for name, value in reversed(statements):
        if name in wanted:
            kept.append((name, value))
            wanted |= set(re.findall(r"\b(?:v\d+|[abcd])\b", value))
    return kept[::-1]


def kind_of(statements: list[tuple[str, str]], how: str) -> str:
    """Names of operators in what is left, and the first words of how it differs: the same ones are kept once."""
    calls = [re.sub(r"\b(?:v\d+|[abcd])\b", "X", value) for _, value in statements]
    return re.sub(r"[-\d.e+]+", "#", calls[-1]) + " | " + re.sub(r"[-\d.]+", "#", how)[:50]


def smaller(
    inputs: dict[str, str], statements: list[tuple[str, str]], output: str
) -> tuple[list[tuple[str, str]], str] | None:
    """What the output needs, run alone; then without the first statements, whose eager values become inputs. None: alone it agrees."""
    statements = needed(statements, output)
    found = differences(text_of(inputs, statements, [output]), [output])
    return (statements, found[0][1]) if found else None


class NoTime(BaseException):
    """A program took too long. Not an Exception: torch would make one of its own of it."""


def search(first: int, until: float, keep: pathlib.Path) -> None:
    """In a process of its own: a line of JSON for each program begun, so that a death is told by the last one."""

    def stop(number: int, frame: Any) -> None:
        raise NoTime

    signal.signal(signal.SIGALRM, stop)
    kinds = {json.loads(f.read_text())["kind"] for f in keep.glob("*.json")}
    seed = first
    while time.time() < until:
        print(json.dumps({"seed": seed}), flush=True)
        signal.alarm(120)
        try:
            inputs, statements, outputs = make(seed)
            found = differences(text_of(inputs, statements, outputs), outputs)
            if found and not found[0][0]:  # it raises: each output by itself
                found = [(o, found[0][1]) for o in outputs]
            for output, how in found[:3]:
                if kind_of(needed(statements, output), how) in kinds:
                    continue
                left = smaller(inputs, statements, output)
                if left is None:
                    continue
                kind = kind_of(*left)
                if kind in kinds:
                    continue
                kinds.add(kind)
                used = {n: v for n, v in inputs.items() if any(re.search(rf"\b{n}\b", value) for _, value in left[0])}
                about = {"seed": seed, "kind": kind, "how": left[1], "text": text_of(used, left[0], [output])}
                (keep / f"{seed}_{output}.json").write_text(json.dumps(about, indent=1))
                print(json.dumps({"found": kind, "how": left[1]}), flush=True)
        except NoTime:
            print(json.dumps({"slow": seed}), flush=True)
        finally:
            signal.alarm(0)
        seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("inductor_found"))
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)  # of the process that searches
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    if options.until:
        search(options.first, options.until, options.keep)
        return 0
    until = time.time() + 60 * options.minutes
    seed = options.first
    while time.time() < until:
        words = [
            sys.executable,
            "-m",
            "tests.flows.debugger.inductor_search",
            "--first",
            str(seed),
            "--keep",
            str(options.keep),
            "--until",
            str(until),
        ]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                told = json.loads(line)
                seed = told.get("seed", seed)
                if "seed" not in told:
                    print(f"{seed}: {told}", flush=True)
        if process.returncode != 0:
            print(f"{seed}: the process ended with {process.returncode}", flush=True)
        seed += 1
    print(
        f"{seed - options.first} programs, {len(list(options.keep.glob('*.json')))} kinds of differences in {options.keep}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
