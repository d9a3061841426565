// Nodes whose results are known: operators, arithmetic on sizes, attributes, items, scopes.
#include <cstdint>

#include <nanobind/stl/string.h>

#include "app/casters/tensor_caster.h"
#include "app/fx/walk.h"

namespace nb = nanobind;

namespace cutaway::fx {

using namespace casters;

nb::list nodes_of(nb::handle graph_module) {
  nb::object nodes = graph_module.attr("graph").attr("nodes");
  return nb::list(nodes);
}

std::string python_text(nb::handle h) { return nb::cast<std::string>(nb::str(h)); }

std::string symbolic_name(nb::handle function) {
  // By name and module: two functions of one meaning (operator.add, int.__add__) do not both occur.
  static const std::unordered_map<std::string, std::string> table = {
      {"_operator.add", "sym.add"}, {"_operator.sub", "sym.sub"}, {"_operator.mul", "sym.mul"}, {"_operator.floordiv", "sym.floordiv"},
      {"_operator.mod", "sym.mod"}, {"_operator.neg", "sym.neg"}, {"_operator.truediv", "sym.truediv"}, {"_operator.pow", "sym.pow"},
      {"_operator.eq", "sym.eq"}, {"_operator.ne", "sym.ne"}, {"_operator.lt", "sym.lt"}, {"_operator.le", "sym.le"},
      {"_operator.gt", "sym.gt"}, {"_operator.ge", "sym.ge"}, {"_operator.and_", "sym.and"}, {"_operator.or_", "sym.or"},
      {"_operator.not_", "sym.not"}, {"torch.sym_not", "sym.not"}, {"torch.sym_max", "sym.max"}, {"torch.sym_min", "sym.min"},
      {"torch.sym_int", "sym.int"}, {"torch.sym_float", "sym.float"}, {"torch.sym_ite", "sym.ite"}, {"torch.sym_sum", "sym.sum"},
      {"torch._sym_sqrt", "sym.sqrt"}, {"math.trunc", "sym.trunc"}, {"math.floor", "sym.floor"}, {"math.ceil", "sym.ceil"}, {"builtins.round", "sym.round"},
      {"builtins.abs", "sym.abs"}, {"math.exp", "sym.exp"}, {"math.log", "sym.log"}, {"math.sin", "sym.sin"}, {"math.cos", "sym.cos"}, {"math.tanh", "sym.tanh"}, {"math.sqrt", "sym.sqrt"}};
  if (!nb::hasattr(function, "__name__") || !nb::hasattr(function, "__module__")) return {};
  auto found = table.find(python_text(function.attr("__module__")) + "." + python_text(function.attr("__name__")));
  return found == table.end() ? std::string() : found->second;
}

void FxWalk::refuse(nb::handle fx_node, base::Error error) const {
  const ir::Location location = location_of(words, fx_node);
  error.place = place_of(location, fx_node);
  const std::string name = python_text(fx_node.attr("name"));
  error.because += (error.because.empty() ? "" : "; ") + ("at node '" + name + "'") + (location.function.empty() ? "" : " in " + location.function);
  throw ErrorException(std::move(error));
}

ir::Argument FxWalk::argument_of(nb::handle fx_node, nb::handle python, Tuples tuples, const Environment& env) const {
  auto lookup = [&](nb::handle n) -> base::Result<ir::Argument> {
    auto found = env.find(n.ptr());
    if (found == env.end()) return base::Error{.what = "node '" + python_text(n.attr("name")) + "' is used before it is defined"};
    if (tuples == Tuples::as_lists)   // an operator's results as another's list of tensors
      if (auto* t = found->second.argument.as<ir::Tuple>()) return ir::Argument(ir::List{t->items});
    return found->second.argument;
  };
  auto result = to_argument(words, python, tuples, lookup);
  if (!result.ok()) refuse(fx_node, result.error());
  return std::move(result).value();
}

ir::Argument FxWalk::define_leaf(nb::handle fx_node, std::string name, nb::handle value, ir::Node& node) {
  auto type = type_of_value(words, dims_, value);
  if (!type.ok()) refuse(fx_node, type.error());
  const ir::ValueId id = graph.add_value(std::move(name), std::move(*type));
  node.results.push_back(id);
  return ir::ValueRef{id};
}

ir::Argument FxWalk::define_results(nb::handle fx_node, nb::handle value, ir::Node& node) {
  const std::string name = python_text(fx_node.attr("name"));
  auto is_list = [](nb::handle h) { return PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()); };
  if (!is_list(value)) {
    node.returns.push_back(ir::Node::kSingle);
    return define_leaf(fx_node, name, value, node);
  }
  std::vector<ir::Argument> items;
  const size_t n = nb::len(value);
  bool nested = false;
  for (size_t i = 0; i < n; ++i) nested |= is_list(nb::object(value[i]));
  for (size_t i = 0; i < n; ++i) {
    nb::object item = value[i];
    std::string item_name = name + "." + std::to_string(i);
    if (!is_list(item)) {
      if (nested) node.returns.push_back(ir::Node::kSingle);
      items.push_back(define_leaf(fx_node, std::move(item_name), item, node));
      continue;
    }
    std::vector<ir::Argument> inner;
    const size_t m = nb::len(item);
    for (size_t j = 0; j < m; ++j) {
      nb::object leaf = item[j];
      if (is_list(leaf)) refuse(fx_node, {.what = "a result nested three deep is not imported"});
      inner.push_back(define_leaf(fx_node, item_name + "." + std::to_string(j), leaf, node));
    }
    node.returns.push_back(static_cast<int32_t>(m));
    items.push_back(ir::List{std::move(inner)});
  }
  if (!nested) node.returns.push_back(static_cast<int32_t>(n));
  return PyTuple_Check(value.ptr()) ? ir::Argument(ir::Tuple{std::move(items)}) : ir::Argument(ir::List{std::move(items)});
}

void FxWalk::add_op(nb::handle fx_node, nb::handle value, Environment& env, ir::Block& block) {
  nb::object target = fx_node.attr("target");
  nb::object schema = target.attr("_schema");
  ir::Node node;
  node.target = ir::join_op_name(python_text(schema.attr("name")), python_text(schema.attr("overload_name")));
  node.location = graph.add_location(location_of(words, fx_node));
  for (nb::handle a : fx_node.attr("args")) node.args.push_back(argument_of(fx_node, a, Tuples::as_lists, env));
  for (auto [key, a] : nb::cast<nb::dict>(fx_node.attr("kwargs"))) node.kwargs.emplace_back(python_text(key), argument_of(fx_node, a, Tuples::as_lists, env));

  // The schema says what is a list and what are several results; fx shows both as sequences.
  const size_t count = nb::len(nb::object(schema.attr("returns")));
  ir::Argument result = ir::None{};
  if (count == 1) {
    // make_fx has no description of a sparse tensor and writes None.
    if (value.is_none() && python_text(schema.attr("returns")[0].attr("type")) == "Tensor")
      refuse(fx_node, {.what = "the result of " + node.target + " is not described", .because = "its layout is not strided"});
    result = define_results(fx_node, value, node);
  } else if (count > 1) {
    if (!(PyTuple_Check(value.ptr()) || PyList_Check(value.ptr())) || nb::len(value) != count)
      refuse(fx_node, {.what = node.target + " gives " + std::to_string(count) + " results, and its meta shows another number"});
    result = define_results(fx_node, value, node);
    if (node.returns.size() == 1 && node.returns[0] != ir::Node::kSingle) node.returns.assign(count, ir::Node::kSingle);
  }
  env[fx_node.ptr()].argument = std::move(result);
  block.nodes.push_back(std::move(node));
}

void FxWalk::add_symbolic(nb::handle fx_node, const std::string& name, nb::handle value, Environment& env, ir::Block& block) {
  ir::Node node;
  node.target = name;
  node.location = graph.add_location(location_of(words, fx_node));
  for (nb::handle a : fx_node.attr("args")) node.args.push_back(argument_of(fx_node, a, Tuples::as_lists, env));
  node.returns = {ir::Node::kSingle};
  env[fx_node.ptr()].argument = define_leaf(fx_node, python_text(fx_node.attr("name")), value, node);
  block.nodes.push_back(std::move(node));
}

// torch.export writes `with torch.no_grad()` and autocast as operators over a graph module of their own: our scopes.
void FxWalk::add_scope(nb::handle graph_module, nb::handle fx_node, const std::string& prefix, Environment& env, ir::Block& block) {
  const std::string name = python_text(fx_node.attr("target").attr("name")());
  nb::object args = fx_node.attr("args");
  ir::Node node;
  node.kind = ir::Node::Kind::scope;
  node.location = graph.add_location(location_of(words, fx_node));
  size_t at = 0;
  if (name == "wrap_with_set_grad_enabled") {
    node.state.grad_enabled = nb::cast<bool>(args[0]);
    at = 1;
  } else {   // wrap_with_autocast(device_type, dtype, enabled, cache_enabled, graph, *operands)
    const std::string device = python_text(args[0]);
    nb::object dtype = args[1], cache = args[3];
    if (dtype.is_none()) dtype = nb::module_::import_("torch").attr("get_autocast_dtype")(device);
    node.state.autocast.push_back({.device = {.type = device}, .enabled = nb::cast<bool>(args[2]), .dtype = static_cast<ir::DType>(to_ivalue(dtype).toInt()), .cache = cache.is_none() || nb::cast<bool>(cache)});
    at = 4;
  }
  nb::object attribute = args[at];   // a get_attr node
  if (PyObject_IsInstance(attribute.ptr(), words.node.ptr()) != 1) refuse(fx_node, {.what = "the body of " + name + " is not a module of the graph"});
  const std::string target = python_text(attribute.attr("target"));
  nb::object body = graph_module.attr("get_submodule")(target);
  if (!results_are_known(body)) refuse(fx_node, {.what = "the body of " + name + " calls Python functions"});
  Environment inner;
  size_t operand = at + 1;
  for (nb::handle n : nodes_of(body))
    if (python_text(n.attr("op")) == "placeholder") inner[n.ptr()].argument = argument_of(fx_node, args[operand++], Tuples::keep, env);
  ir::Block region;
  walk(body, prefix + target + ".", inner, region);
  std::vector<ir::Argument> results;
  std::string base = python_text(fx_node.attr("name"));
  for (size_t i = 0; i < region.outputs.size(); ++i) {
    if (auto* ref = region.outputs[i].as<ir::ValueRef>()) {
      const ir::ValueId id = graph.add_value(base + "." + std::to_string(i), graph.value(ref->id).type);
      node.results.push_back(id);
      results.push_back(ir::ValueRef{id});
    } else {
      refuse(fx_node, {.what = "a result of " + name + " is not a tensor"});
    }
  }
  node.returns.assign(node.results.size(), ir::Node::kSingle);
  node.regions.push_back(std::move(region));
  env[fx_node.ptr()].argument = ir::Tuple{std::move(results)};
  block.nodes.push_back(std::move(node));
}

void FxWalk::bind_attribute(nb::handle graph_module, nb::handle fx_node, const std::string& prefix, Environment& env) {
  const std::string target = python_text(fx_node.attr("target")), qualified = prefix + target;
  nb::object value = nb::borrow(graph_module);
  for (size_t at = 0; at <= target.size();) {
    size_t dot = target.find('.', at);
    if (dot == std::string::npos) dot = target.size();
    value = value.attr(target.substr(at, dot - at).c_str());
    at = dot + 1;
  }
  if (PyObject_IsInstance(value.ptr(), words.nn_module.ptr()) == 1) return;   // the body of an operator that takes one; that node reads it itself
  if (!is_tensor(value.ptr())) {
    auto literal = to_argument(words, value, Tuples::keep, [](nb::handle) { return base::Error{.what = "a node as an attribute"}; });
    if (!literal.ok()) refuse(fx_node, {.what = "the attribute '" + qualified + "' is no tensor", .because = "it is an opaque object of type " + python_text(value.type().attr("__name__"))});
    env[fx_node.ptr()] = {std::move(*literal), value};
    return;
  }
  ir::ValueId id;
  if (auto found = attributes_.find(qualified); found != attributes_.end()) {
    id = found->second;
  } else {
    ir::InputKind kind = ir::InputKind::constant;
    if (PyObject_IsInstance(value.ptr(), words.parameter.ptr()) == 1) {
      kind = ir::InputKind::parameter;
    } else if (qualified.find("_tensor_constant") == std::string::npos) {
      // fx registers every plain tensor that it was given as a buffer; its own constants tell themselves by name.
      const size_t dot = target.rfind('.');
      nb::object owner = dot == std::string::npos ? nb::borrow(graph_module) : graph_module.attr("get_submodule")(target.substr(0, dot));
      if (nb::cast<bool>(owner.attr("_buffers").attr("__contains__")(target.substr(dot == std::string::npos ? 0 : dot + 1)))) kind = ir::InputKind::buffer;
    }
    id = add_lifted(python_text(fx_node.attr("name")), qualified, kind, value);
    attributes_[qualified] = id;
  }
  Binding& binding = env[fx_node.ptr()];
  binding.argument = ir::ValueRef{id};
  if (evaluating_) binding.fake = fake_of(id);
}

bool FxWalk::bind_item(nb::handle fx_node, Environment& env) {
  nb::object args = fx_node.attr("args");
  nb::object from = args[0], index = args[1];
  auto found = env.find(from.ptr());
  if (found == env.end()) return false;
  const Binding& whole = found->second;
  const std::vector<ir::Argument>* items = nullptr;
  if (auto* l = whole.argument.as<ir::List>()) items = &l->items;
  if (auto* t = whole.argument.as<ir::Tuple>()) items = &t->items;
  Binding part;
  if (items && PyLong_Check(index.ptr())) {
    int64_t i = nb::cast<int64_t>(index);
    if (i < 0) i += static_cast<int64_t>(items->size());
    if (i < 0 || i >= static_cast<int64_t>(items->size())) refuse(fx_node, {.what = "item " + python_text(index) + " of " + std::to_string(items->size()) + " results"});
    part.argument = (*items)[static_cast<size_t>(i)];
  } else if (items && PySlice_Check(index.ptr())) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(index.ptr(), &start, &stop, &step) < 0) throw nb::python_error();
    const Py_ssize_t n = PySlice_AdjustIndices(static_cast<Py_ssize_t>(items->size()), &start, &stop, step);
    std::vector<ir::Argument> some;
    for (Py_ssize_t i = 0; i < n; ++i) some.push_back((*items)[static_cast<size_t>(start + i * step)]);
    part.argument = ir::Tuple{std::move(some)};
  } else if (auto* d = whole.argument.as<ir::Dict>(); d && PyUnicode_Check(index.ptr())) {
    const std::string key = python_text(index);
    bool met = false;
    for (auto& [k, v] : d->items)
      if (k == key) { part.argument = v; met = true; }
    if (!met) refuse(fx_node, {.what = "no result is called '" + key + "'"});
  } else {
    return false;
  }
  if (evaluating_) part.fake = nb::object(whole.fake[index]);
  env[fx_node.ptr()] = std::move(part);
  return true;
}

}  // namespace cutaway::fx
