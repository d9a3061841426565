// Nodes that run once on fake tensors under the recorder: Python functions, methods and modules.
#include <cstdint>

#include <ATen/core/grad_mode.h>
#include <nanobind/stl/string.h>

#include "app/casters/tensor_caster.h"
#include "app/fx/walk.h"
#include "core/ir/edit.h"
#include "core/trace/fake_tensor.h"
#include "core/trace/recorder.h"

namespace nb = nanobind;

namespace cutaway::fx {

using namespace casters;

std::string qualified_name(nb::handle function) {
  nb::module_ torch = nb::module_::import_("torch");
  std::string name = python_text(nb::module_::import_("torch.fx.node").attr("_get_qualified_name")(function));
  if (name.rfind("_operator.", 0) == 0) return name.substr(1);
  if (name.find('.') == std::string::npos) return "builtins." + name;
  // torch.fx names the C++ module behind a public name; people know the public one.
  struct Public { const char *inner, *prefix, *outer; };
  for (auto [inner, prefix, outer] : {Public{"torch._C._nn.", "", "torch.nn.functional"}, Public{"torch._C._special.", "special_", "torch.special"},
                                      Public{"torch._C._fft.", "fft_", "torch.fft"}, Public{"torch._C._linalg.", "linalg_", "torch.linalg"},
                                      Public{"torch.functional.", "", "torch"}}) {
    if (name.rfind(inner, 0) != 0) continue;
    std::string last = name.substr(std::string(inner).size());
    if (last.rfind(prefix, 0) == 0) last = last.substr(std::string(prefix).size());
    nb::module_ module = nb::module_::import_(outer);
    if (nb::hasattr(module, last.c_str()) && nb::object(module.attr(last.c_str())).is(function)) return std::string(outer) + "." + last;
  }
  return name;
}

void FxWalk::remember(ir::ValueId id, const at::Tensor& fake) {
  value_of_tensor_[fake.unsafeGetTensorImpl()] = id;
  alive_.push_back(fake);
}

nb::object FxWalk::fake_of(ir::ValueId id) {
  if (auto found = input_fakes_.find(id); found != input_fakes_.end()) return found->second;
  for (size_t i = 0; i < lifted_inputs_.size(); ++i) {
    if (lifted_inputs_[i].value != id) continue;
    const at::Tensor fake = trace::make_fake(unwrap_tensor(nb::object(lifted_[i]).ptr()));
    remember(id, fake);
    return input_fakes_[id] = nb::steal(wrap_tensor(fake));
  }
  throw ErrorException({.what = "an input has no data to make a fake tensor from"});
}

// --- grad mode, inference mode, autocast: state of the calls that follow, not calls ---

bool FxWalk::change_state(nb::handle fx_node, const std::string& name, const nb::object& args, const nb::object& kwargs, Environment& env) {
  nb::object target = fx_node.attr("target");
  auto call = [&] { return nb::steal(PyObject_Call(target.ptr(), args.ptr(), kwargs.ptr())); };
  if (name == "torch._C._set_grad_enabled") {
    const bool before = at::GradMode::is_enabled();
    if (entered_.empty() || !nb::isinstance<nb::bool_>(entered_.front())) entered_.insert(entered_.begin(), nb::bool_(before));   // what leave_states returns to
    if (!call().is_valid()) throw nb::python_error();
    const bool now = at::GradMode::is_enabled();
    if (now == nb::cast<bool>(entered_.front())) state_.grad_enabled.reset();   // as outside again
    else state_.grad_enabled = now;
  } else if (name == "torch.amp.autocast_mode._enter_autocast") {
    nb::object context = call();
    if (!context.is_valid()) throw nb::python_error();
    entered_.push_back(context);
    state_.autocast.push_back({.device = {.type = python_text(context.attr("device"))}, .enabled = nb::cast<bool>(context.attr("_enabled")),
                               .dtype = static_cast<ir::DType>(to_ivalue(context.attr("fast_dtype")).toInt()), .cache = nb::cast<bool>(context.attr("_cache_enabled"))});
    env[fx_node.ptr()].fake = context;
  } else if (name == "torch.amp.autocast_mode._exit_autocast") {
    if (!call().is_valid()) throw nb::python_error();
    if (!state_.autocast.empty()) state_.autocast.pop_back();
    if (!entered_.empty()) entered_.pop_back();
  } else if (name == "torch.autograd.grad_mode._enter_inference_mode") {
    refuse(fx_node, {.what = "inference mode inside a graph is not imported", .hint = "use torch.no_grad"});
  } else if (name.rfind("torch._C._functorch.", 0) == 0 || name.rfind("torch._functorch.", 0) == 0) {
    refuse(fx_node, {.what = "the transform '" + name + "' is not imported", .because = "torch.func's levels are no state of a graph"});
  } else {
    return false;
  }
  env[fx_node.ptr()].argument = ir::None{};
  return true;
}

void FxWalk::leave_states() {
  nb::gil_scoped_acquire gil;
  while (!entered_.empty()) {
    nb::object last = std::move(entered_.back());
    entered_.pop_back();
    if (nb::isinstance<nb::bool_>(last)) at::GradMode::set_enabled(nb::cast<bool>(last));
    else if (PyObject* r = PyObject_CallMethod(last.ptr(), "__exit__", "OOO", Py_None, Py_None, Py_None)) Py_DECREF(r);
    else PyErr_WriteUnraisable(last.ptr());
  }
}

// --- one call ---

FxWalk::Recording FxWalk::record(nb::handle fx_node, const std::vector<at::Tensor>& tensors, const nb::object& function, const nb::object& args, const nb::object& kwargs) {
  Recording r;
  r.inputs = tensors;
  std::vector<c10::IValue> inputs(tensors.begin(), tensors.end());
  trace::RecordOptions options;
  trace::Recorder recorder(std::move(inputs), std::move(options));
  r.result = nb::steal(PyObject_Call(function.ptr(), args.ptr(), kwargs.ptr()));
  if (!r.result.is_valid()) {
    nb::python_error e;
    refuse(fx_node, {.what = "'" + python_text(fx_node.attr("target")) + "' cannot be recorded on fake tensors", .because = python_text(e.value())});
  }
  std::vector<c10::IValue> outputs;
  std::function<void(nb::handle)> collect = [&](nb::handle h) {
    if (is_tensor(h.ptr())) outputs.push_back(unwrap_tensor(h.ptr()));
    else if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) for (nb::handle x : h) collect(x);
    else if (PyDict_Check(h.ptr())) for (auto [k, x] : nb::cast<nb::dict>(h)) collect(x);
  };
  collect(r.result);
  r.graph = unwrap(recorder.finish(outputs));
  r.constants = recorder.constants();
  return r;
}

// The recorded nodes with our value ids. Returns what stands for the outputs.
std::vector<ir::Argument> FxWalk::splice(nb::handle fx_node, Recording& recording, ir::Block& into, ir::LocationId location, bool at_top) {
  const std::string base = python_text(fx_node.attr("name"));
  std::vector<ir::ValueId> ours(recording.graph.values.size(), ir::kNoValue);
  for (size_t i = 0; i < recording.graph.inputs.size(); ++i) {
    const ir::ValueId theirs = recording.graph.inputs[i].value;
    if (i < recording.inputs.size()) {
      ours[theirs] = value_of_tensor_.at(recording.inputs[i].unsafeGetTensorImpl());
      continue;
    }
    const at::Tensor& constant = recording.constants.at(i - recording.inputs.size());
    if (auto met = value_of_tensor_.find(constant.unsafeGetTensorImpl()); met != value_of_tensor_.end()) {   // an earlier node's, reached through an attribute
      ours[theirs] = met->second;
      continue;
    }
    if (trace::is_fake(constant)) refuse(fx_node, {.what = "the call uses a tensor that no node of the graph made"});
    const std::string name = "constant" + std::to_string(lifted_inputs_.size());
    ours[theirs] = add_lifted(name, name, ir::InputKind::constant, nb::steal(wrap_tensor(constant)));
    remember(ours[theirs], constant);
  }
  size_t counter = 0;
  auto rename = [&](ir::ValueId& id) { id = ours[id]; };
  std::function<void(ir::Block&)> adopt = [&](ir::Block& block) {
    for (ir::Node& node : block.nodes) {
      for (auto& a : node.args) ir::for_each_value(a, rename);
      for (auto& [k, a] : node.kwargs) ir::for_each_value(a, rename);
      for (ir::Block& r : node.regions) adopt(r);
      for (ir::ValueId& id : node.results) {
        std::string name = base + (at_top ? "." : ".r") + std::to_string(counter++);
        const ir::ValueId mine = graph.add_value(std::move(name), recording.graph.value(id).type);
        ours[id] = mine;
        id = mine;
      }
      node.location = location;
    }
    for (auto& a : block.outputs) ir::for_each_value(a, rename);
  };
  adopt(recording.graph.body);
  for (ir::Node& n : recording.graph.body.nodes) into.nodes.push_back(std::move(n));
  return std::move(recording.graph.body.outputs);
}

void FxWalk::evaluate(nb::handle graph_module, nb::handle fx_node, const std::string& prefix, Environment& env, ir::Block& block) {
  const std::string op = python_text(fx_node.attr("op"));
  nb::object target = fx_node.attr("target");

  // Arguments twice: as objects to call with, and as what the graph writes down.
  nb::object map_arg = nb::module_::import_("torch.fx.node").attr("map_arg");
  std::vector<at::Tensor> tensors;
  auto add_tensor = [&](const nb::object& o) {
    std::function<void(nb::handle)> add = [&](nb::handle h) {
      if (is_tensor(h.ptr())) {
        const at::Tensor& t = unwrap_tensor(h.ptr());
        for (auto& known : tensors)
          if (known.is_same(t)) return;
        tensors.push_back(t);
      } else if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) {
        for (nb::handle x : h) add(x);
      } else if (PyDict_Check(h.ptr())) {
        for (auto [k, x] : nb::cast<nb::dict>(h)) add(x);
      }
    };
    add(o);
  };
  nb::object to_fake = nb::cpp_function([&](nb::handle n) -> nb::object {
    auto found = env.find(n.ptr());
    if (found == env.end()) refuse(fx_node, {.what = "node '" + python_text(n.attr("name")) + "' is used before it is defined"});
    add_tensor(found->second.fake);
    return found->second.fake.is_valid() ? found->second.fake : nb::none();
  });
  nb::object args = nb::tuple(map_arg(fx_node.attr("args"), to_fake));
  nb::object kwargs = nb::steal(PyDict_New());
  kwargs.attr("update")(map_arg(fx_node.attr("kwargs"), to_fake));   // a plain dict: fx's own is no dict to PyObject_Call

  ir::Node node;
  node.kind = ir::Node::Kind::call;
  nb::object function = target;
  const bool is_module = op == "call_module";
  if (op == "call_method") {
    node.target = "Tensor." + python_text(target);
    function = nb::object(args[0]).attr(python_text(target).c_str());
    args = nb::steal(PyTuple_GetSlice(args.ptr(), 1, PyTuple_GET_SIZE(args.ptr())));
  } else if (is_module) {
    // The module's own call, with its parameters and buffers as inputs of the graph.
    nb::object module = graph_module.attr("get_submodule")(target);
    nb::dict fakes;
    for (const char* list : {"named_parameters", "named_buffers"})
      for (nb::handle pair : module.attr(list)()) {
        const std::string inner = python_text(pair[0]), qualified = prefix + python_text(target) + "." + inner;
        ir::ValueId id;
        if (auto found = attributes_.find(qualified); found != attributes_.end()) {
          id = found->second;
        } else {
          std::string name = qualified;
          for (char& c : name) if (c == '.') c = '_';
          id = add_lifted(name, qualified, list[6] == 'p' ? ir::InputKind::parameter : ir::InputKind::buffer, nb::object(pair[1]));
          attributes_[qualified] = id;
        }
        nb::object fake = fake_of(id);
        add_tensor(fake);
        fakes[pair[0]] = fake;
      }
    args = nb::make_tuple(module, fakes, args, kwargs);
    kwargs = nb::dict();
    function = nb::module_::import_("torch.func").attr("functional_call");
  } else {
    node.target = qualified_name(target);
    if (change_state(fx_node, node.target, args, kwargs, env)) return;
  }

  Recording recording = record(fx_node, tensors, function, args, kwargs);
  node.location = graph.add_location(location_of(words, fx_node));
  ir::Block region;
  nb::object result = recording.result;
  std::vector<ir::Argument> outputs = splice(fx_node, recording, region, node.location, is_module);

  // Sizes, dtypes and the like: numbers that the graph writes where they are used. The operators that only asked go.
  if (outputs.empty()) {
    bool has_effects = false;
    for (const ir::Node& n : region.nodes) has_effects |= ir::has_effects(n);
    if (!has_effects) region.nodes.clear();
  }
  // An operator called by its own name needs no captured call around it; nor does a module, whose call is inlined; a call that
  // ran nothing gives what it got. Under another grad mode or autocast the first two need a scope.
  const bool bare = is_module || PyObject_IsInstance(target.ptr(), words.op_overload.ptr()) == 1;
  const bool flat = region.nodes.empty() || (bare && state_.is_default());
  if (bare) node.kind = ir::Node::Kind::scope;
  size_t next = 0;
  std::vector<ir::ValueId> defined;
  std::function<ir::Argument(nb::handle, const std::string&)> bind = [&](nb::handle h, const std::string& name) -> ir::Argument {
    PyObject* o = h.ptr();
    if (is_tensor(o)) {
      const ir::Argument output = outputs.at(next++);
      const at::Tensor& t = unwrap_tensor(o);
      auto* ref = output.as<ir::ValueRef>();
      if (!ref) refuse(fx_node, {.what = "a result of the call is not a value of its recording"});
      ir::ValueId id = ref->id;
      if (!flat) {
        id = graph.add_value(name, graph.value(ref->id).type);
        defined.push_back(id);
      }
      remember(id, t);
      return ir::ValueRef{id};
    }
    if (PyList_Check(o) || PyTuple_Check(o)) {
      std::vector<ir::Argument> items;
      size_t i = 0;
      for (nb::handle x : h) items.push_back(bind(x, name + "." + std::to_string(i++)));
      if (PyTuple_Check(o)) return ir::Tuple{std::move(items)};
      return ir::List{std::move(items)};
    }
    if (PyDict_Check(o)) {
      ir::Dict dict;
      for (auto [k, x] : nb::cast<nb::dict>(h)) dict.items.emplace_back(python_text(k), bind(x, name + "." + python_text(k)));
      return dict;
    }
    auto literal = to_argument(words, h, Tuples::keep, [](nb::handle) { return base::Error{.what = "a node as a result"}; });
    if (!literal.ok()) refuse(fx_node, literal.error());
    return std::move(*literal);
  };
  const std::string name = python_text(fx_node.attr("name"));
  Binding binding{bind(result, name), result};

  if (flat) {
    for (ir::Node& n : region.nodes) block.nodes.push_back(std::move(n));
    env[fx_node.ptr()] = std::move(binding);
    return;
  }

  if (node.kind == ir::Node::Kind::scope) {
    node.target.clear();
  } else {
    for (nb::handle a : fx_node.attr("args")) node.args.push_back(argument_of(fx_node, a, Tuples::keep, env));
    for (auto [key, a] : nb::cast<nb::dict>(fx_node.attr("kwargs"))) node.kwargs.emplace_back(python_text(key), argument_of(fx_node, a, Tuples::keep, env));
  }
  node.state = state_;
  node.results = std::move(defined);
  // The nesting of the results. Leaves that are not tensors are literals to the rest of the graph and no results.
  std::function<bool(const ir::Argument&)> is_plain = [](const ir::Argument& a) { return a.as<ir::ValueRef>() != nullptr; };
  const std::vector<ir::Argument>* items = nullptr;
  if (auto* t = binding.argument.as<ir::Tuple>()) items = &t->items;
  if (auto* l = binding.argument.as<ir::List>()) items = &l->items;
  if (is_plain(binding.argument)) {
    node.returns = {ir::Node::kSingle};
  } else if (items) {
    bool nested = false;
    for (auto& i : *items) nested |= !is_plain(i);
    if (!nested) {
      node.returns = {static_cast<int32_t>(items->size())};
    } else {
      for (auto& i : *items) {
        size_t n = 0;
        bool deep = false;
        if (is_plain(i)) { node.returns.push_back(ir::Node::kSingle); continue; }
        if (auto* t = i.as<ir::Tuple>()) { n = t->items.size(); for (auto& x : t->items) deep |= !is_plain(x); }
        else if (auto* l = i.as<ir::List>()) { n = l->items.size(); for (auto& x : l->items) deep |= !is_plain(x); }
        else deep = true;
        if (deep) refuse(fx_node, {.what = "a call with results of mixed kinds is not imported", .because = "its results are not tensors and lists of tensors"});
        node.returns.push_back(static_cast<int32_t>(n));
      }
    }
  } else if (!node.results.empty()) {
    refuse(fx_node, {.what = "a call that returns a dict is not imported"});
  }
  region.outputs = std::move(outputs);
  node.regions.push_back(std::move(region));
  block.nodes.push_back(std::move(node));
  env[fx_node.ptr()] = std::move(binding);
}

}  // namespace cutaway::fx
