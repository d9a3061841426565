import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.export
import torch.fx
from cutaway._native import capture as capture
from cutaway._native import debug as debug
from cutaway._native import replay as replay

__version__: str

class Error(Exception):
    pass

class GraphInput:
    """An input of a graph, as it was when it was asked for."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str:
        """As in the text form: "f32[2, 64]"."""

    @property
    def sizes(self) -> list[str]:
        """Of a tensor, as text: "64", "s0*2"."""

    @property
    def kind(self) -> str:
        """ "user", "parameter", "buffer" or "constant"."""

    @property
    def qualified_name(self) -> str:
        """Of a parameter, buffer or constant; else empty."""

    def __repr__(self) -> str: ...

class GraphNode:
    """A node of a graph, as it was when it was asked for."""

    @property
    def kind(self) -> str:
        """ "op", "call" or "scope"."""

    @property
    def target(self) -> str: ...
    @property
    def args(self) -> list[str]:
        """Arguments as text: "%x", "2.0"."""

    @property
    def kwargs(self) -> dict: ...
    @property
    def results(self) -> list[str]:
        """Names of what it defines."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int:
        """0 when not known."""

    @property
    def function(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def region(self) -> list[GraphNode]:
        """The nodes inside a call or scope."""

    def __repr__(self) -> str: ...

class Difference:
    """One difference between two graphs."""

    @property
    def where(self) -> str: ...
    @property
    def text(self) -> str: ...
    def __repr__(self) -> str: ...

class Graph:
    """A program of operators over typed values; str() is its text form."""

    @staticmethod
    def parse(text: str, file: str = "<text>") -> Graph:
        """
        Reads the text form. Raises cutaway.Error with the place of the mistake.
        """

    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...
    def text(self, *, header: bool = False, types: bool = True, locations: bool = True, regions: bool = True) -> str:
        """The text form; without types or regions it cannot be read back."""

    def __eq__(self, arg: Graph, /) -> bool:
        """Everything that the text shows is equal."""

    def __hash__(self) -> int: ...
    def __len__(self) -> int: ...
    def __copy__(self) -> Graph: ...
    def __deepcopy__(self, memo: dict) -> Graph: ...
    def __getstate__(self) -> str: ...
    def __setstate__(self, arg: str, /) -> None: ...
    def copy(self) -> Graph: ...
    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def inputs(self) -> list[GraphInput]: ...
    @property
    def nodes(self) -> list[GraphNode]: ...
    @property
    def outputs(self) -> list[str]:
        """What it returns, as text."""

    def digest(self) -> str:
        """32 hexadecimal digits that do not depend on names and source lines."""

    def canonical_text(self) -> str:
        """The text whose digest digest() is."""

    def verify(self) -> list[str]:
        """What is wrong with the graph; empty when nothing is."""

    def remove_dead_code(self) -> int:
        """
        Removes nodes whose results nothing uses and that have no effects; returns how many.
        """

    def remove_unused_inputs(self) -> list[int]:
        """Returns the old positions of the inputs that stay."""

    def keep_outputs(self, positions: Sequence[int]) -> None: ...
    def replace_value_by_input(self, name: str) -> None: ...
    def replace_uses(self, old: str, new: str) -> None: ...
    def extract(self, positions: Sequence[int]) -> Graph:
        """The nodes at these positions as a graph of their own."""

    def prefix(self, last: int) -> Graph: ...
    def renumber(self, *, rename: bool = False) -> None: ...

    lifted: list[Any]
    """Tensors of the inputs that are not the user's, once the graph was imported with them."""
    taken: list[int]
    """Which inputs of a captured graph with symbolic sizes it takes."""
    symbols: dict[str, int]
    """Those sizes, as they were when it was imported."""
    output_spec: Any
    """How trace() takes the flat outputs apart."""
    size_guards: SizeGuards
    """Of a graph that was recorded with dynamic sizes."""
    static_sizes: dict[str, str]
    """Dynamic sizes that stay numbers, and why."""
    @staticmethod
    def from_fx(graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any] | None = None) -> Graph: ...
    @staticmethod
    def from_export(program: torch.export.ExportedProgram | str | os.PathLike[str]) -> Graph: ...
    def run(self, *inputs: Any) -> tuple[Any, ...]: ...
    def to_fx(self, grad_enabled: bool | None = None) -> torch.fx.GraphModule: ...
    def to_python(
        self, inputs: Sequence[Any] | None = None, *, files: Sequence[str | None] | None = None, seed: int = 0
    ) -> str: ...

def diff(a: Graph, b: Graph) -> list[Difference]:
    """
    Differences by structure; names of values and source lines do not count.
    """

def unified_diff(a: Graph, b: Graph, a_name: str = "a", b_name: str = "b", *, context: int = 3) -> str: ...
def run_folder() -> str:
    """
    Where this process leaves bundles and records, unless it is told another place.
    """

class Store:
    def __init__(self, path: str, durable: bool = True) -> None: ...
    @property
    def path(self) -> str: ...
    def put_tensor(self, name: str, tensor: torch.Tensor, is_parameter: bool = False) -> dict: ...
    def get_tensors(self, names: Sequence[str], device: str | None = None) -> list[torch.Tensor]: ...
    def metadata(self, name: str) -> dict: ...
    def names(self, prefix: str = "") -> list[str]: ...
    def compare(self, a: str, b: str) -> list[tuple[str, list[str], int, int]]: ...
    def put_storage(self, tensor: torch.Tensor) -> str:
        """Writes the whole storage that the tensor looks at; returns its digest."""

    def get_storage(self, digest: str, device: str | None = None) -> torch.Tensor:
        """
        The bytes of a storage, verified, as a tensor of u8 in memory of its own.
        """

    def verify(self, digest: str) -> None: ...

def compute_tensor_metadata(tensor: torch.Tensor) -> dict: ...
def digest_storage(tensor: torch.Tensor) -> str: ...

class Manifest:
    """
    What a bundle says about its graph: inputs, stage, backend, failure, versions.
    """

    def __init__(self) -> None: ...
    @staticmethod
    def from_json(text: str) -> Manifest:
        """
        Reads the text of a manifest.json; cutaway.Error names the field that is wrong.
        """

    def to_json(self) -> str:
        """
        The text of a manifest.json, without the graph's digest (zeros in its place).
        """

    @property
    def name(self) -> str: ...
    @name.setter
    def name(self, arg: str, /) -> None: ...
    @property
    def stage(self) -> str: ...
    @stage.setter
    def stage(self, arg: str, /) -> None: ...
    @property
    def backend(self) -> str: ...
    @backend.setter
    def backend(self, arg: str, /) -> None: ...
    @property
    def tracing_mode(self) -> str: ...
    @tracing_mode.setter
    def tracing_mode(self, arg: str, /) -> None: ...
    @property
    def accuracy(self) -> str: ...
    @accuracy.setter
    def accuracy(self, arg: str, /) -> None: ...
    @property
    def seed(self) -> int: ...
    @seed.setter
    def seed(self, arg: int, /) -> None: ...
    @property
    def random_inputs(self) -> bool: ...
    @random_inputs.setter
    def random_inputs(self, arg: bool, /) -> None: ...
    def __eq__(self, arg: Manifest, /) -> bool: ...

def read_manifest(path: str | os.PathLike) -> str:
    """The manifest of the bundle at `path`, checked, as JSON text."""

def verify_bundle(path: str | os.PathLike) -> None:
    """
    Checks a bundle whole: manifest, graph, and the content of every blob. Raises cutaway.Error.
    """

def looks_like_bundle(path: str | os.PathLike) -> bool:
    """Whether `path` is a directory with a manifest.json and a graph.cut."""

def differing_fields(a: str, b: str) -> list[str]:
    """The fields in which two tensor records (JSON text) differ, in words."""

def rand_strided(
    size: Sequence[int],
    stride: Sequence[int],
    dtype: object,
    device: str = "cpu",
    storage_offset: int = 0,
    requires_grad: bool = False,
    seed: int = 0,
    range: tuple[int, int] | None = None,
) -> torch.Tensor: ...
def index_range(graph: Graph, input: int) -> tuple[int, int] | None: ...
def clone_keeping_aliases(values: Sequence) -> list: ...
def cast_to_fp64(values: Sequence) -> list: ...
def cast_graph_to_fp64(graph: Graph) -> Graph: ...
def save_bundle(
    path: str,
    graph: Graph,
    inputs: Sequence,
    parameters: Sequence[int],
    max_bytes: int | None,
    seed: int,
    versions: Mapping[str, str],
    manifest: Manifest | None,
) -> None: ...
def load_bundle(path: str, device: str | None, random_inputs: bool) -> tuple[Graph, list, list[int], str]: ...

class FakeMode:
    """
    While entered, operators on fake tensors and factory functions give fake tensors on this thread.
    """

    def __init__(self) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(self, *args) -> None: ...

def make_fake(like: torch.Tensor, device: str | None = None) -> torch.Tensor:
    """
    A tensor with the metadata of `like` and no data, said to be on `device` (its own by default).
    """

def make_fake_of_size(like: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """
    A fake of `like` with other sizes; its dimensions lie in memory in the same order.
    """

def make_fakes(like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Fakes of several tensors that share storages as they do."""

def is_fake(value: object) -> bool: ...
def shape_counters() -> dict:
    """
    How often shapes were found by a rule of ours, torch's C++ meta kernels, the dispatcher, the memo.
    """

def dispatcher_operators() -> list[tuple[str, int]]:
    """Operators whose shapes needed the dispatcher, most frequent first."""

def shape_rule_names() -> list[str]: ...

class SizeGuards:
    """
    What must hold of the inputs' sizes for a graph with symbolic sizes to be the program's.
    """

    def check(self, inputs: list) -> str:
        """
        Empty when they hold for these inputs, one for each input of the graph; else the first that does not, in words.
        """

    @property
    def texts(self) -> list[str]: ...
    @property
    def reasons(self) -> list[str]: ...

class Program:
    """
    A graph made ready to run many times: operators resolved, literals converted, last uses known.
    """

    def __init__(self, graph: Graph) -> None: ...
    def __call__(self, *inputs: object) -> tuple:
        """
        Runs on these inputs. The outputs are always a tuple, one entry for each output of the graph.
        """

    def run(
        self,
        inputs: list,
        boxed: bool = False,
        before: Callable[[int, str, list], None] | None = None,
        after: Callable[[int, str, list], list | None] | None = None,
    ) -> tuple:
        """
        Runs on a list of inputs, which boxed empties so that inputs are freed at their last use. before(position, node, arguments) and
        after(position, node, results) are called around each operator; a list that after returns replaces the results.
        """

    def __deepcopy__(self, memo: object) -> object: ...

def graph_run(
    graph: Graph, inputs: object, boxed: bool = False, before: Callable | None = None, after: Callable | None = None
) -> tuple:
    """Program(graph).run(…) for a graph that runs once."""

def graph_run_fwd_maybe_bwd(
    graph: Graph, inputs: object, only_fwd: bool = False, disable_clone: bool = False, seed: int = 1337
) -> object:
    """
    Runs a graph on clones of its inputs, backward too where an output requires it, always from the same random state.
    Gives the outputs (only_fwd) or a list: outputs, None, gradients of parameters, parameters, buffers, gradients of the other inputs.
    """

def infer_types(graph: Graph) -> Graph:
    """
    The graph with the type of every value found anew from its inputs' types, by running it on fake tensors.
    """

class TensorStats:
    """What one pass over a pair of tensors found."""

    @property
    def dtype(self) -> str: ...
    @property
    def sizes(self) -> list[int]: ...
    @property
    def elements(self) -> int: ...
    @property
    def unequal(self) -> int: ...
    @property
    def not_close(self) -> int: ...
    @property
    def max_abs(self) -> float: ...
    @property
    def max_rel(self) -> float: ...
    @property
    def rmse_result(self) -> float: ...
    @property
    def rmse_reference(self) -> float: ...
    @property
    def worst_index(self) -> list[int]: ...
    @property
    def worst_reference(self) -> float: ...
    @property
    def worst_result(self) -> float: ...
    @property
    def nan_reference(self) -> int: ...
    @property
    def nan_result(self) -> int: ...
    @property
    def inf_reference(self) -> int: ...
    @property
    def inf_result(self) -> int: ...
    @property
    def cosine(self) -> float: ...

class Verdict:
    """
    The answer of same(): true where the two count as the same, with the evidence.
    """

    def __init__(self, outcome: str, path: str = "", reason: str = "") -> None: ...
    def __copy__(self) -> Verdict: ...
    def with_outcome(self, outcome: str, reason: str) -> Verdict:
        """The same evidence under another outcome, for another reason."""

    @property
    def aspect(self) -> str:
        """What it is about: values, gradients, inputs, dtype, strides, …."""

    @property
    def outcome(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def stats(self) -> TensorStats | None: ...
    @property
    def leaves(self) -> int: ...
    @property
    def parts(self) -> list[Verdict]: ...
    def __bool__(self) -> bool: ...
    def __str__(self) -> str: ...
    def __repr__(self) -> str: ...
    def to_json(self) -> str:
        """The verdict as JSON text; NaN and infinities are strings."""

    exception: Exception
    """Set by same_two_models where a run raised."""
    fp64_exception: Exception
    """Set by same_two_models where the fp64 run raised."""

def same(
    ref: object | None, res: object | None, fp64_ref: object | None, options: dict, names: Sequence[str] = []
) -> Verdict: ...

class RunResults:
    """What a run left behind: outputs, gradients, inputs."""

class Judge:
    """
    What eager does with some inputs, and the fp64 run of it: compares runs of compiled code with that.
    """

    def __init__(
        self,
        eager: object,
        fp64: object | None,
        inputs: list,
        *,
        held: list = [],
        held_fp64: list = [],
        only_forward: bool = False,
        backward_state: object | None = None,
        generators: Mapping[str, str] = {},
        tolerance: float = 0.001,
        ignore_non_fp: bool = False,
        sees_layout: bool = True,
    ) -> None:
        """
        Runs eager(list) and raises what it raises; an fp64(list) that raises is as none. `held` are tensors that the functions hold themselves, `held_fp64` those
        of fp64, in the same order. `generators` are as generators() gives them; `backward_state` as a manifest has it, None: as around the call.
        """

    def run(self, compiled: object) -> RunResults:
        """Runs compiled(list) on the same inputs, from the same random state."""

    def repeat_eager(self) -> Verdict:
        """Eager once more, by the same rules."""

    def judge(self, results: RunResults) -> Verdict: ...
    @property
    def fp64_problem(self) -> str:
        """Why there is no fp64 run; empty: there is one, or none was asked for."""

def accuracy_signature(verdict: Verdict) -> dict:
    """The failure signature of a verdict that is false."""

def start_profile() -> None:
    """Graphs that native compiles from now on are timed, step by step."""

def profile_text() -> str: ...
def profile_json() -> str: ...
def profile_timeline() -> str: ...
def raise_checks_as(type: object) -> None:
    """What a difference found by CUTAWAY_CHECK is raised as."""

class ProgramDied(RuntimeError):
    pass

class NativeGraph:
    """A graph compiled by a backend of the table."""

    def __call__(self, inputs: list) -> list: ...

def compile_backend(name: str, graph: Graph, inputs: list, stage: str) -> NativeGraph:
    """
    Compiles a graph with a backend of the table, by name, for somebody who watches its runs: what is compiled is there before the first one.
    """

def register_backend(name: str, compile: Callable) -> None:
    """
    Adds a backend to the table: compile(graph, inputs, settings) gives a function that takes a list of inputs and returns the outputs.
    """

def thaw_all() -> None: ...
def cuda_state() -> dict:
    """
    Of the backend native: cards and compiler, how many CUDA graphs were recorded and played back, and reasons against others.
    """

def list_backends() -> list:
    """
    A row for each backend that is registered: its name and what it can do.
    """

def backend_row(name: str) -> dict:
    """What a backend can do, by its name (cutaway backends)."""

def has_backend_row(name: str) -> bool:
    """False for a name that only torch, or the program, may know."""

def aot_signature(name: str, inputs: Sequence[torch.Tensor], names: Sequence[tuple[str, str, str]]) -> Graph:
    """
    A graph of inputs (name, kind, qualified name) alone: what AotGraph needs to know of a program.
    """

class AotFunction:
    """
    A graph differentiated ahead of time for one kind of inputs: its graphs, and what the split decided.
    """

    @property
    def joint(self) -> Graph:
        """Forward and backward as one functional graph."""

    @property
    def forward(self) -> Graph: ...
    @property
    def backward(self) -> Graph | None:
        """None when nothing requires grad."""

    @property
    def saved_bytes(self) -> int:
        """Of what lives only between forward and backward."""

    @property
    def kept_bytes(self) -> int:
        """Of inputs and outputs that backward uses, which live anyway."""

    @property
    def recomputed(self) -> int:
        """Operators that run again in backward."""

    @property
    def has_compiled_backward(self) -> bool: ...
    @property
    def symbols(self) -> dict:
        """
        Sizes that are expressions, with their numbers when the graphs were recorded; empty when all are numbers.
        """

    @property
    def guards(self) -> list[str]:
        """What must hold of the symbols in a run."""

    @property
    def static_because(self) -> str:
        """Why symbols of the captured graph have become numbers."""

    @property
    def primals(self) -> list: ...
    @property
    def outputs(self) -> list: ...

class AotGraph:
    """
    A captured graph to call: differentiated ahead of time for each kind of inputs when they first come.
    """

    def __init__(
        self,
        graph: Graph,
        name: str = "model",
        partition: str = "min_cut",
        backend: str | Callable[[Graph, list], Callable[[list], Sequence]] = "eager",
        program: Callable[[list], Sequence] | None = None,
        program_end: Callable[[], None] | None = None,
        location: object = None,
        accumulates: bool = False,
    ) -> None:
        """
        ``backend``: one of the table by name, or a function (graph, example inputs) -> function of a list of inputs, called for forward and, at its first run, for backward.
        """

    def find(self, inputs: object) -> AotFunction:
        """The function for inputs like these, made now if there is none."""

    def __call__(self, *inputs: object) -> tuple: ...
    def run(self, inputs: list) -> tuple:
        """
        Runs on a list of inputs, which it empties so that they are freed at their last use.
        """

    @property
    def functions(self) -> list[AotFunction]: ...

class AotBySize:
    """
    A program with symbolic sizes to call: recorded once for all sizes where that is possible, else for each set that comes.
    """

    def __init__(
        self,
        read: Sequence[int],
        symbols: Sequence[tuple[int, int]],
        static_because: str,
        record_symbolic: Callable,
        record: Callable,
        backend: str,
    ) -> None:
        """
        ``read``: inputs that come as a tensor and are taken as its number; ``symbols``: input and dimension that show each one.
        """

    def run(self, inputs: list) -> tuple | None:
        """
        None: so many sets of sizes have come that another graph would not be worth it.
        """

    @property
    def static_because(self) -> str:
        """Why recordings are for one set of sizes each; empty: they are not."""

    @property
    def symbolic(self) -> list[AotGraph]:
        """What was recorded for all sizes."""

    @property
    def by_size(self) -> int:
        """How many recordings are for one set of sizes."""

def set_exception_describer(describe: Callable) -> None:
    """
    describe(exception) gives (type, message, trace, user frame, is it memory, nodes that it points to, kernels built before it).
    """

def run_trial(trial: str) -> str:
    """
    Runs one trial (JSON) in this process; returns its result (JSON). docs/formats/worker.md
    """

def serve_worker(fd: int, is_trusted: bool, prepare: object | None = None, meanwhile: object | None = None) -> None:
    """Serves trials on a socket until it closes, each in a forked child."""

def warm_up() -> None:
    """
    Runs one small graph on one thread, so that children find everything loaded.
    """

def failure_signature(type: str, message: str, user_frame: str, stage: str, is_memory: bool) -> dict: ...
def write_repro(
    path: str, graph: Graph, inputs: list, manifest: dict, parameters: Sequence[int], max_bytes: int
) -> dict: ...
def checkpoint_path(folder: str, graph: Graph) -> str:
    """
    Where the bundle of this graph goes: folder/checkpoints/<nodes>, or that and a number.
    """

def copy_newest(bundle: str, folder: str) -> None:
    """folder/repro becomes a copy of the bundle."""

def needs_trust(path: str) -> list[str]:
    """
    What running this bundle does besides computing, in words: then commands take it with --trust only.
    """

def process_settings() -> dict[str, str]:
    """Settings of the process that are not torch's defaults, by name."""

def generators() -> dict[str, str]:
    """
    The state of the default random generator of each device in use, in hexadecimal digits.
    """

def count_nodes(graph: Graph) -> int:
    """A captured call counts as one."""

def operators(graph: Graph) -> list[str]:
    """Operators of the graph in program order, in regions too."""

def minify(
    bundle: str,
    output: str,
    backend: str,
    accuracy: str,
    jobs: int,
    timeout: float | None,
    time_budget: float,
    match: str,
    trust: bool,
) -> str:
    """
    `cutaway minify` in this process; what its --json prints. Empty texts are as recorded, or as the command has them. Ctrl-C is raised.
    """

def explain_text(answer: str, form: str) -> str:
    """What `cutaway explain --json` prints as "sarif" or "github"."""

def explain_html(answer: str) -> str:
    """What ExplainOutput.to_json() writes, for a notebook."""

def page_html(page: str) -> str:
    """A whole page inside a notebook: in a frame that runs nothing."""

def import_fx(graph_module: object, example_inputs: object | None = None) -> tuple[Graph, list[torch.Tensor]]:
    """A torch.fx.GraphModule as (Graph, lifted tensors)."""

def import_exported_program(program: object) -> tuple[Graph, list[torch.Tensor]]:
    """A torch.export.ExportedProgram as (Graph, lifted tensors)."""

def export_fx(graph: Graph, lifted: object | None = None, grad_enabled: bool | None = None) -> torch.fx.GraphModule:
    """A Graph as a torch.fx.GraphModule."""

def graph_to_python(graph: Graph, inputs: object | None, files: Sequence[str], seed: int) -> str:
    """A script that needs torch alone."""

class _PythonLocation:
    def __init__(self, skipped_folders: Sequence[str]) -> None: ...
    def enter_module(self, path: str) -> None: ...
    def leave_module(self) -> None: ...

def _record(
    f: Callable[[], list[Any]],
    inputs: Sequence[torch.Tensor],
    names: Sequence[tuple[str, str, str]],
    where: str,
    fake: bool,
    graph_name: str,
    location: _PythonLocation,
) -> tuple[Graph, list[torch.Tensor]]: ...
def _record_symbolic(
    at: Callable[[Sequence[int]], tuple[Graph, list[torch.Tensor]]], symbols: Sequence[tuple[str, int]]
) -> tuple[Graph, list[torch.Tensor], SizeGuards, dict[str, str], int]: ...
def _is_data_dependent(message: str) -> bool: ...
def _refused_above_autograd() -> int: ...
def _size_expression(expression: Any, known: dict) -> Any: ...
def _require_backward_device(tensors: Sequence[torch.Tensor]) -> None: ...
