"""Errors of capture's own and the records that failed frames leave: what is told, what is kept, what replaying one shows."""

import collections
import dataclasses
import enum
import inspect
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading

import cutaway
import pytest
import torch
from cutaway import _replay
from cutaway._native import replay as native

HERE = pathlib.Path(__file__)


@pytest.fixture(autouse=True)
def _errors_are_reported(monkeypatch):
    monkeypatch.setenv(
        "CUTAWAY_STRICT", "0"
    )  # errors are planted here: they are reported and leave a record, they do not fail the test


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTAWAY_DEBUG_DIR", str(tmp_path))
    cutaway.reset()
    yield
    cutaway.reset()


def records(folder):
    return sorted(str(p.parent) for p in pathlib.Path(folder).glob("cutaway_debug/records/*/record.json"))


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


# --- what is told


def test_own_error_is_told_once_and_the_frame_runs(tmp_path, capfd):
    def tensor_as_key():
        y = torch.ones(2, 2)
        z = {y: 5}
        return z

    with cutaway.options(planted_fault="BUILD_MAP"):
        compiled = cutaway.compile(tensor_as_key)
        for _ in range(2):
            ((key, value),) = compiled().items()
            assert torch.equal(key, torch.ones(2, 2)) and value == 5
    told = capfd.readouterr().err
    assert told.count("runs eagerly") == 1
    assert f"tensor_as_key ({HERE}:" in told
    assert f"{HERE}:{line_of(tensor_as_key, '{y: 5}')}" in told
    assert "z = {y: 5}" in told and "BUILD_MAP" in told
    assert "TORCHDYNAMO_VERBOSE" in told and "CUTAWAY_STRICT" in told
    (record,) = records(tmp_path)
    assert record in told and f"cutaway replay --trust {record}" in told
    assert cutaway.counters["frames"]["failed"] == 1


def test_own_error_raises_where_the_user_asked(tmp_path):
    def f(x):
        return {x: 1}

    with cutaway.options(planted_fault="BUILD_MAP"):
        with pytest.raises(cutaway.exc.InternalError, match="BUILD_MAP") as caught:
            cutaway.compile(f, fullgraph=True)(torch.ones(2))
        assert caught.value.user_stack[-1][1] == line_of(f, "return {x: 1}")
        cutaway.reset()
        with cutaway.options(strict=True), pytest.raises(cutaway.exc.InternalError):
            cutaway.compile(f)(torch.ones(2))


def test_verbose_adds_both_stacks(tmp_path, capfd):
    def f(x):
        return {x: 1}

    with cutaway.options(planted_fault="BUILD_MAP", verbose=True):
        cutaway.compile(f)(torch.ones(2))
    told = capfd.readouterr().err
    assert "test_verbose_adds_both_stacks" in told  # who called
    assert "our stack" in told and re.search(r"_native|libcutaway|capture", told.split("our stack")[1])


def test_no_record_where_none_is_wanted(tmp_path, capfd):
    def f(x):
        return {x: 1}

    with cutaway.options(planted_fault="BUILD_MAP", record_errors=False):
        cutaway.compile(f)(torch.ones(2))
    assert "runs eagerly" in capfd.readouterr().err
    assert not records(tmp_path)


def test_a_folder_that_cannot_be_written_hides_nothing(tmp_path, monkeypatch, capfd):
    (tmp_path / "cutaway_debug").write_text("in the way")

    def f(x):
        return {x: 1}

    with cutaway.options(planted_fault="BUILD_MAP"):
        assert len(cutaway.compile(f)(torch.ones(2))) == 1
    told = capfd.readouterr().err
    assert "BUILD_MAP" in told and "record: none" in told


def test_a_backend_that_fails_leaves_no_record(tmp_path):
    def broken(module, inputs):
        raise ValueError("no")

    with cutaway.options(replay_record_enabled=True), pytest.raises(cutaway.exc.BackendCompilerFailed):
        cutaway.compile(lambda x: x + 1, backend=broken)(torch.ones(2))
    assert not records(tmp_path)


# --- what is kept, and replayed in another process


class Mode(enum.Enum):
    plus = 1
    minus = 2


@dataclasses.dataclass
class Config:
    scale: float = 2.0
    mode: Mode = Mode.minus
    sizes: list = dataclasses.field(default_factory=lambda: [1, 2])


Pair = collections.namedtuple("Pair", "first second")
GLOBAL_TABLE = {"bias": 3.0}


class Block(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("mask", torch.ones(4))
        self.cache = collections.defaultdict(list)

    def forward(self, x):
        if self.config.mode is Mode.minus:
            x = -x
        return self.layer(x) * self.mask * self.config.scale + GLOBAL_TABLE["bias"]


def helper(block, x, pair):
    y = block(x) + pair.first
    return {y: pair.second}


def record_of(tmp_path, function):
    """The record of the frame of that function: what it calls leaves one too, once it runs eagerly."""
    (record,) = [r for r in records(tmp_path) if f"locals__{function}-" in os.path.basename(r)]
    return record


def replay_of(tmp_path, function="f"):
    return cutaway.replay(record_of(tmp_path, function))


def test_record_of_a_module_of_the_users(tmp_path, capfd):
    block, default = Block(Config(sizes=[5])), Pair(torch.ones(4), "text")

    def f(x, pair=default):
        return helper(block, x, pair)

    with cutaway.options(planted_fault="BUILD_MAP"):
        cutaway.compile(f)(torch.ones(2, 4))
    result = replay_of(tmp_path)  # no trust needed: this process wrote it
    assert result.same, str(result)
    assert result.now.instruction.startswith("BUILD_MAP")
    assert [row[2] for row in result.now.stack] == [f.__qualname__, "helper"]
    assert "{y: pair.second}" in str(result)
    text = native.summary(result.path)
    assert "left out" not in text and "torch" in text


def test_a_mended_frame_is_captured(tmp_path, capfd):
    block = Block(Config())

    def f(x):
        return helper(block, x, Pair(torch.ones(4), 7))

    with cutaway.options(planted_fault="BUILD_MAP"):
        cutaway.compile(f)(torch.ones(2, 4))
    record = record_of(tmp_path, "f")
    file = pathlib.Path(record, "record.json")
    data = json.loads(file.read_text())
    del data["options"]["planted"]
    file.write_text(json.dumps(data))
    result = cutaway.replay(record)
    assert result.now is None and not result.same
    assert "graph" in result.plan


def test_record_of_a_failing_inner_frame(tmp_path, capfd):
    def inner(x):
        table = {x: "inner"}
        return len(table) + x.shape[0]

    def outer(x):
        y = x + 1
        print("a break, so that the next call is a frame of its own")
        return inner(y)

    with cutaway.options(planted_fault="BUILD_MAP"):
        assert cutaway.compile(outer)(torch.ones(3)) == 4
    result = replay_of(tmp_path, "inner")
    assert result.same, str(result)
    assert result.now.stack[-1][2].endswith("inner") and '{x: "inner"}' in str(result)


def test_what_is_not_supported_leaves_a_record_when_asked(tmp_path):
    def f(x):
        y = x.sin()
        print("woo")
        return y

    def try_it():
        with pytest.raises(cutaway.exc.Unsupported) as caught:
            cutaway.compile(f, fullgraph=True)(torch.ones(3))
        return str(caught.value)

    assert "record: " not in try_it()
    assert not records(tmp_path)
    cutaway.reset()
    with cutaway.options(replay_record_enabled=True):
        assert "record: " in try_it()
    result = replay_of(tmp_path)
    assert result.same and result.now.id == "print" and result.now.kind == "unsupported", str(result)


def test_results_of_calls_are_kept(tmp_path, capfd):
    calls = []

    @cutaway.assume_constant_result
    def answer():
        calls.append(1)
        return 41

    def f(x):
        return {x: answer() + len(x.shape)}

    with cutaway.options(planted_fault="BUILD_MAP"):
        cutaway.compile(f)(torch.ones(2))
    (record,) = records(tmp_path)
    data = json.loads(pathlib.Path(record, "record.json").read_text())
    assert len(data["results"]) >= 1
    assert any("answer" in row["call"] for row in data["results"])
    assert cutaway.replay(record).same


def test_what_cannot_be_recorded_is_named_and_a_placeholder_stands_for_it(tmp_path, capfd):
    lock = threading.Lock()
    things = [lock, (i for i in range(3)), torch.ones(2).to_sparse()]

    def f(x):
        return {x: things}

    with cutaway.options(planted_fault="BUILD_MAP"):
        cutaway.compile(f)(torch.ones(2))
    (record,) = records(tmp_path)
    text = native.summary(record)
    assert "_thread.lock" in text and "generator" in text and "sparse" in text
    assert cutaway.replay(record).same


def test_aliases_state_and_sizes(tmp_path, capfd):
    base = torch.arange(6.0)

    def f(x, whole):
        return {x: whole.sum()}

    with cutaway.options(planted_fault="BUILD_MAP"), torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        cutaway.compile(f)(base[2:], base)
    (record,) = records(tmp_path)
    data = json.loads(pathlib.Path(record, "record.json").read_text())
    assert data["state"]["grad_enabled"] is False and data["state"]["autocast"][0]["dtype"] == "bf16"
    assert len({t["tensor"]["storage"] for t in data["tensors"]}) == 1
    assert cutaway.replay(record).same


# --- a record is data


def one_record(tmp_path):
    def f(x):
        return {x: 1}

    with cutaway.options(planted_fault="BUILD_MAP"):
        cutaway.compile(f)(torch.ones(2))
    return records(tmp_path)[0]


def test_a_strangers_record_needs_trust(tmp_path, capfd, monkeypatch):
    record = one_record(tmp_path)
    monkeypatch.setattr(_replay, "_written", set())
    with pytest.raises(cutaway.Error, match="runs its code"):
        cutaway.replay(record)
    assert cutaway.replay(record, trust=True).same


def test_opening_executes_nothing(tmp_path, capfd):
    record = pathlib.Path(one_record(tmp_path))
    trap = tmp_path / "cutaway_trap.py"
    trap.write_text("raise SystemExit('a record was executed by opening it')\n")
    data = json.loads((record / "record.json").read_text())
    data["objects"].append({"kind": "import", "module": "cutaway_trap", "name": "anything"})
    (record / "record.json").write_text(json.dumps(data))
    sys.path.insert(0, str(tmp_path))
    try:
        assert "cutaway_trap" in native.modules(str(record))
        assert "cutaway_trap" in native.summary(str(record))
        assert "cutaway_trap" not in sys.modules
    finally:
        sys.path.remove(str(tmp_path))
    with pytest.raises(cutaway.Error, match="cutaway_trap"):  # not to be found by the fresh process
        cutaway.replay(record, trust=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=2), "version 2 is not known"),
        (lambda d: d.update(surprise=1), "surprise"),
        (lambda d: d["objects"].append({"kind": "pickle", "text": "gASV"}), "unknown kind of object"),
        (lambda d: d["frame"].update(callee=10_000), "frame.callee"),
        (lambda d: d["objects"].append({"kind": "tuple", "items": [-1]}), "items"),
        (lambda d: d["versions"].update(python="2.7.18"), "Python 2.7"),
        (lambda d: d["objects"].append({"kind": "tuple", "items": [len(d["objects"])]}), "contains itself"),
        (lambda d: d["objects"].append({"kind": "dtype", "text": "no_such_dtype"}), "no_such_dtype"),
        (
            lambda d: d["objects"].extend(
                [{"kind": "import", "module": "math"}, {"kind": "instance", "type": len(d["objects"])}]
            ),
            "class",
        ),
        (lambda d: d["objects"].append({"kind": "int", "text": "one"}), "one|invalid literal"),
        (lambda d: d["frame"].update(arguments=[]), "arguments"),
    ],
)
def test_bad_records_are_clear_errors(tmp_path, capfd, change, message):
    record = pathlib.Path(one_record(tmp_path))
    data = json.loads((record / "record.json").read_text())
    change(data)
    (record / "record.json").write_text(json.dumps(data))
    with pytest.raises(cutaway.Error, match=message):
        cutaway.replay(record, trust=True, in_process=True)


def test_code_that_is_none(tmp_path, capfd):
    """A blob that is whole but holds something else, and one that was altered."""
    record = pathlib.Path(one_record(tmp_path))
    data = json.loads((record / "record.json").read_text())
    code = next(o for o in data["objects"] if o["kind"] == "code")
    blob = record / "blobs" / code["blob"][:2] / code["blob"]
    content = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(content[:-1] + b"!")
    with pytest.raises(cutaway.Error, match="blob"):
        cutaway.replay(record, trust=True, in_process=True)
    blob.write_bytes(content)
    (record / "blobs" / "zz").write_text("a stray file does no harm")
    other = cutaway.Store(record).put_storage(torch.zeros(3, dtype=torch.uint8))
    code["blob"] = other
    (record / "record.json").write_text(json.dumps(data))
    with pytest.raises(cutaway.Error, match="marshal"):
        cutaway.replay(record, trust=True, in_process=True)


def test_damaged_text_is_an_error_never_more(tmp_path, capfd):
    """Bytes of a good record changed, cut and doubled at random: an Error, or a record that reads."""
    record = pathlib.Path(one_record(tmp_path))
    good = (record / "record.json").read_bytes()
    generator = random.Random(7)
    refused = 0
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(bad))
            how = generator.randrange(3)
            if how == 0:
                bad[at] = generator.randrange(256)
            elif how == 1:
                del bad[at : at + generator.randint(1, 40)]
            else:
                bad[at:at] = bad[at : at + generator.randint(1, 40)]
        (record / "record.json").write_bytes(bad)
        try:
            native.summary(str(record))
        except cutaway.Error as error:
            refused += 1
            assert "record.json" in str(error)
    assert refused > 100


def test_in_a_user_script(tmp_path):
    """As a user has it: a script of its own, the environment, the command's words in the message."""
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, cutaway\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.table = {}\n"
        "    def forward(self, x):\n"
        "        return {x: len(self.table)}\n"
        "print(len(cutaway.compile(Net())(torch.ones(2))))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "CUTAWAY_PLANT_CAPTURE_FAULT": "BUILD_MAP"},
        timeout=120,
    )
    assert done.stdout.strip() == "1"
    assert f"{script}:7" in done.stderr and "BUILD_MAP" in done.stderr
    found = records(tmp_path)
    result = cutaway.replay(found[-1], trust=True)
    assert result.same, str(result)
