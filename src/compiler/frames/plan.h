// What capture makes of a frame and a cache hit runs, in C++: guards, then the graph, then new objects, then effects, then an ending.
// Main type: Plan. The runner (run_plan.h) executes it; text() of it is what explain and logs show.
//
// Order of a run: inputs are read from their sources; the graph runs; all recipes are made, in the order of their numbers; then the
// effects, in program order; then the ending. So a recipe sees everything as it was before the effects, and an object that two places
// refer to is one recipe: identity is the number. A container that contains itself is made empty and filled by an effect.
#pragma once
#include <Python.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/bytecode/code.h"
#include "compiler/guards/guard.h"
#include "compiler/guards/source.h"
#include "core/base/result.h"
#include "core/debug/events.h"
#include "core/ir/graph.h"
#include "core/symbolic/guard.h"
#include "core/symbolic/number_run.h"

namespace cutaway::frames {
using bytecode::Held;
using bytecode::ObjectRef;
using guards::FrameView;

/// Number of a recipe in its plan. Parts of a recipe have smaller numbers.
using RecipeId = uint32_t;
inline constexpr RecipeId kNull = 0xffffffffu;      ///< on the stack: CPython's NULL. In locals: unbound, or dead
inline constexpr RecipeId kNothing = 0xfffffffeu;   ///< an optional part that is absent

struct Recipe {
  enum class Kind : uint8_t {
    source,       ///< read `source`
    constant,     ///< `object`
    output,       ///< result `index` of the graph
    tuple, list, set, frozenset,   ///< of `parts`
    dict,         ///< parts are key, value, key, value, …
    slice,        ///< three parts
    call,         ///< parts[0] called with the rest; `object` may be a tuple of names of the last ones. Only for what runs no user code
    instance,     ///< a new instance of the type `object`, made without __new__ or __init__ of the user's; `names` with their parts are put
                  ///< into its dictionary (or slots). `base` (of dict, list, tuple, … subclasses) gives its content
    function,     ///< parts: code, globals, defaults, kwdefaults, closure, annotations; all but the first two may be kNothing. `object`: qualname
    cell,         ///< parts[0], or kNothing for an empty one
    method,       ///< parts: function, self
    size,         ///< `size`: an integer, a tuple of them, or a float, that follows from sizes and numbers of inputs
  };
  Kind kind = Kind::constant;
  Held object;
  const guards::Source* source = nullptr;
  uint32_t index = 0;
  bool acts = false;              ///< making it changes a mode of torch: not for a run that failed
  RecipeId base = kNothing;
  std::vector<RecipeId> parts;
  std::vector<ObjectRef> names;
  std::shared_ptr<const struct SizeRecipe> size;
};
/// Numbers are read from `sources`, in the order of the symbols that the expressions were made for.
struct SizeRecipe {
  std::vector<const guards::Source*> sources;
  std::vector<symbolic::Expression> items;
  ObjectRef container;   ///< the type of a tuple of the items; empty: the one item itself
  std::shared_ptr<const symbolic::NumberRun> numbers;   ///< of a float: number `kept` of these, and no items
  size_t kept = 0;
  std::string text;
};

struct Effect {
  enum class Kind : uint8_t {
    replace_list, replace_dict, replace_set,   ///< target's contents become parts (key, value, … for a dict); list[:] = …, so identity stays
    set_item, delete_item,                     ///< target[key] of a dict or list, without user code
    set_attr, delete_attr,                     ///< generic: no __setattr__ of the user's
    store_global, delete_global,               ///< `name` in the globals of the frame's function, or of the function `target`
    store_cell,                                ///< value may be kNothing: emptied
    call,                                      ///< target called with parts: logging, warnings, torch._C._set_grad_enabled, random.setstate
  };
  Kind kind = Kind::call;
  RecipeId target = kNothing, key = kNothing, value = kNothing;
  std::vector<RecipeId> parts;
  ObjectRef name;               ///< attribute, global, or the tuple of keyword names of a call
  int32_t before_node = -1;     ///< number of the graph's nodes recorded before it: when a later one raises, the effect still happens
};

/// Why capture could not go on. Ids are stable: docs/notes/capture.md lists them.
struct BreakReason {
  std::string id;               ///< "data-dependent-branch", "unknown-c-function", …
  std::string what;             ///< one sentence
  std::string hint;             ///< what to do about it; may be empty
  struct Frame { std::string file; int line = 0; std::string function; std::string text; };
  std::vector<Frame> stack;     ///< of the user, outermost first, source lines filled in where readable
  std::shared_ptr<const BreakReason> cause = nullptr;   ///< why the graph had to end in the first place, where this is a consequence
  /// What capture does about a frame that this stands in the way of.
  enum class Remedy : uint8_t {
    end_further_out,   ///< a graph that ends already may end earlier, or at a call further out
    end_before_made,   ///< CPython must make the object in question: the graph ends before that, even where nothing else ends it
    none,              ///< wherever the graph ends, it would stand in the way again
  } remedy = Remedy::end_further_out;
  std::optional<bool> raises = std::nullopt;            ///< error_on_graph_break at that place, as the captured code set it; absent: as it is outside
};

/// A frame that was begun and goes on after a break.
struct OpenFrame {
  ObjectRef code;                       ///< null: the captured frame's own
  bool is_hidden = false;               ///< a function of ours that stands for C code: no traceback shows it
  bool is_original = false;             ///< the code that the captured frame's own was made from; not held, since it holds this
  ObjectRef globals;                    ///< null: the captured frame's own
  int32_t instruction = -1;             ///< index in the frame's code: the first one that has not happened; of all but the innermost: the one that calls the next frame
  std::vector<RecipeId> locals;         ///< one a slot of localsplus; a slot that holds a cell: the cell. Free variables may be kNull: the closure's
  std::vector<RecipeId> stack;          ///< bottom first; of all but the innermost: without what that instruction takes
};
/// One instruction runs by plain CPython, and the rest is then captured again.
struct Break {
  std::vector<OpenFrame> frames;        ///< the captured frame first, then the calls inside it that were inlined
  BreakReason reason;
};
struct ReturnValue { RecipeId value = kNothing; };
struct RaiseValue { RecipeId exception = kNothing; };
/// The frame as it is: the user's code raises, as far as capture knows. The session looks whether it does.
struct RunEagerly {
  BreakReason reason;
  std::string exception;   ///< name of its type
};
using Ending = std::variant<ReturnValue, RaiseValue, Break, RunEagerly>;

/// A compiled graph as the runner sees it. Called with the GIL held.
struct GraphFunction {
  virtual ~GraphFunction() = default;
  /// Appends one object an output. False with a Python exception set when it raised. Inputs are borrowed.
  virtual bool run(PyObject* const* inputs, size_t count, std::vector<ObjectRef>& outputs) = 0;
  /// After a run that raised: number of the graph's node (as in Effect::before_node), or -1 when that is unknown.
  virtual int64_t failed_node() const { return -1; }
  /// It runs the graph's operators as they are: when it raises, the program does.
  virtual bool is_reference() const { return false; }
  /// After a run that raised: it had written to none of its inputs yet, so that the program may begin again.
  virtual bool left_inputs_alone() const { return false; }
  /// Whether that can ever be said of it.
  virtual bool may_leave_inputs_alone() const { return false; }
  /// While hooks on saved tensors are on, and for tensors with tangents, it runs the graph's operators as they are, in their order.
  virtual bool can_run_operators() const { return true; }
  /// What the backend took for granted about the graph's symbols; null: nothing.
  std::shared_ptr<const std::vector<symbolic::Guard>> size_guards;
};
/// What capture hands to the backend. Outputs are flat; input i is read from input_sources[i].
struct CapturedGraph {
  ir::Graph graph;
  std::vector<const guards::Source*> input_sources;
  std::vector<ObjectRef> example_inputs;   ///< the real tensors and numbers of this call
  std::string name;                        ///< "__compiled_fn_3"; filled by the session
};
/// Given to capture by the session. A backend's failure is a Python exception that is set when the pointer is null.
using Compile = std::function<std::shared_ptr<GraphFunction>(CapturedGraph)>;

struct Plan {
  std::shared_ptr<guards::SourceTable> sources = std::make_shared<guards::SourceTable>();
  std::vector<guards::Guard> guards;
  std::vector<const guards::Source*> inputs;     ///< of the graph
  std::shared_ptr<GraphFunction> graph;          ///< null: nothing was captured (then no recipe may be an output)
  size_t first_change = SIZE_MAX;                ///< number of the graph's first node that changes something outside; before it a run can be given up
  bool restore_switches = false;                 ///< switches of the process are put back when a run fails
  bool runs_without_overriding = false;          ///< inputs may be of classes derived from Tensor, whose __torch_function__ was interpreted already
  bool restore_random = false;                   ///< random numbers are put back when a run is given up
  bool draws_random = false;                     ///< the graph has an operator that draws random numbers
  bool catches = false;                          ///< an operator runs inside a block of the program that may handle what is raised
  std::vector<ObjectRef> callables;              ///< what the graph calls by name (marks.h)
  size_t output_count = 0;
  std::vector<Recipe> recipes;
  std::vector<Effect> effects;
  Ending ending = ReturnValue{};
  std::shared_ptr<const ir::Graph> captured;     ///< for explain and logs; may be null
  size_t op_count = 0;                           ///< torch-level calls in it
  RecipeId add(Recipe r) { recipes.push_back(std::move(r)); return static_cast<RecipeId>(recipes.size() - 1); }
};

/// "x", 0: x.shape[0] is to be symbolic; "n", -1: the integer or float n.
struct DynamicSize { std::string source; int dim = 0; };
struct CaptureOptions {
  bool fullgraph = false;
  std::vector<DynamicSize> dynamic;    ///< by guards::Source::identity
  bool all_dynamic = false;            ///< dynamic=True
  bool runs_python = false;            ///< the backend gets an fx graph: nodes may call functions of the user's
  std::map<int32_t, std::string> break_at;   ///< instructions of the outermost frame before which the graph ends, and why: what other ranks said
  bool outermost_only = false;         ///< graphs end at instructions of the outermost frame, which other ranks can be told
  bool doubts_errors = false;          ///< torch raised while this frame was traced before, and eager did not: such an error ends the graph
  bool verbose = false;                ///< an error of ours brings the stack of C++ along
  debug::Sink* sink = nullptr;
};
/// This frame is not for capture; it runs by CPython, the functions it calls may still be captured.
struct Skip { BreakReason reason; };
/// Our own mistake. Reported once; the frame runs eagerly (fullgraph or CUTAWAY_STRICT raise it).
struct InternalError {
  base::Error error;
  BreakReason where;
  std::string instruction;      ///< "BUILD_MAP at 12": the innermost frame's; empty when none was at hand
  std::string backtrace;        ///< of C++, where it was asked for
};
/// A Python exception is set: the backend raised while compiling.
struct BackendRaised {};
using CaptureResult = std::variant<Plan, Skip, InternalError, BackendRaised>;
/// capture::capture_frame has this form; the session is given it, so that frames need not know capture.
using CaptureFrame = std::function<CaptureResult(const FrameView&, const bytecode::Code&, const CaptureOptions&, const Compile&)>;

}  // namespace cutaway::frames
