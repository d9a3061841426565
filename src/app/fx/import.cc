#include "app/fx/import.h"

#include <nanobind/stl/string.h>

#include "app/casters/tensor_caster.h"
#include "app/fx/walk.h"
#include "core/tensor/convert.h"
#include "core/trace/fake_tensor.h"

namespace nb = nanobind;

namespace cutaway::fx {

using namespace casters;

namespace {
nb::object meta_value(nb::handle fx_node) {
  nb::object meta = fx_node.attr("meta");
  nb::object value = meta.attr("get")("val");
  return value.is_none() ? meta.attr("get")("example_value") : value;
}
bool has_value(nb::handle fx_node) { return nb::cast<bool>(fx_node.attr("meta").attr("__contains__")("val")); }
// torch.Tensor results that are sparse get None for a value from make_fx; nothing tells them from a result that is none.
bool is_scope(const std::string& name) { return name == "wrap_with_set_grad_enabled" || name == "wrap_with_autocast"; }
}  // namespace

bool FxWalk::results_are_known(nb::handle graph_module) const {
  for (nb::handle node : nodes_of(graph_module)) {
    const std::string op = python_text(node.attr("op"));
    if (op == "placeholder" || op == "get_attr" || op == "output") continue;
    if (op != "call_function") return false;
    nb::object target = node.attr("target");
    if (PyObject_IsInstance(target.ptr(), words.higher_order.ptr()) == 1) continue;   // refused or a scope, by the walk
    if (target.is(words.getitem)) {
      nb::object from = node.attr("args")[0];
      if (PyObject_IsInstance(from.ptr(), words.node.ptr()) == 1 && is_tensor(meta_value(from).ptr())) return false;
      continue;
    }
    if (PyObject_IsInstance(target.ptr(), words.op_overload.ptr()) == 1) {
      if (!has_value(node) && nb::len(nb::object(target.attr("_schema").attr("returns"))) > 0) return false;
      continue;
    }
    if (symbolic_name(target).empty() || !has_value(node) || is_tensor(meta_value(node).ptr())) return false;
  }
  return true;
}

ir::ValueId FxWalk::add_lifted(const std::string& name, const std::string& qualified, ir::InputKind kind, nb::handle tensor, const ir::Type* type) {
  ir::Type t;
  if (type) {
    t = *type;
  } else {
    auto found = type_of_value(words, dims_, tensor);
    if (!found.ok()) throw ErrorException(std::move(found).error().at(qualified));
    t = std::move(*found);
  }
  const ir::ValueId id = graph.add_value(name, std::move(t));
  lifted_inputs_.push_back({id, kind, qualified});
  lifted_.append(tensor);
  return id;
}

ir::ValueId FxWalk::add_user_input(nb::handle fx_node, nb::handle example, Environment& env) {
  nb::object meta = meta_value(fx_node);
  nb::handle shown = meta.is_none() && example.is_valid() ? example : nb::handle(meta);
  if (evaluating_ && example.is_valid()) shown = example;
  if (shown.is_none() && !example.is_valid() && !has_value(fx_node))
    refuse(fx_node, {.what = "the input '" + python_text(fx_node.attr("name")) + "' has no type", .hint = "pass example_inputs, one for each placeholder"});
  auto type = type_of_value(words, dims_, shown);
  if (!type.ok()) refuse(fx_node, type.error());
  if (type->is_tensor() && example.is_valid() && is_tensor(example.ptr())) type->tensor.requires_grad = unwrap_tensor(example.ptr()).requires_grad();
  const ir::ValueId id = graph.add_value(python_text(fx_node.attr("name")), std::move(*type));
  user_inputs_.push_back({id, ir::InputKind::user, {}});
  Binding& binding = env[fx_node.ptr()];
  binding.argument = ir::ValueRef{id};
  if (evaluating_) {
    if (is_tensor(shown.ptr())) {
      const at::Tensor fake = trace::make_fake(unwrap_tensor(shown.ptr()));
      binding.fake = nb::steal(wrap_tensor(fake));
      remember(id, fake);
    } else {
      if (PyObject_IsInstance(meta.ptr(), words.sym_int.ptr()) == 1)
        refuse(fx_node, {.what = "the symbolic size '" + python_text(fx_node.attr("name")) + "' of a graph of Python functions is not imported",
                         .because = "its calls are recorded at one size", .hint = "compile with dynamic=False, or import the graph after ahead-of-time autograd"});
      binding.fake = nb::borrow(shown);
    }
  }
  return id;
}

void FxWalk::walk(nb::handle graph_module, const std::string& prefix, Environment& env, ir::Block& block) {
  for (nb::handle node : nodes_of(graph_module)) {
    const std::string op = python_text(node.attr("op"));
    if (op == "placeholder") continue;
    if (op == "get_attr") {
      bind_attribute(graph_module, node, prefix, env);
      continue;
    }
    nb::object target = node.attr("target");
    if (op == "output") {
      nb::object returned = node.attr("args")[0];
      ir::Argument outputs = argument_of(node, returned, Tuples::keep, env);
      if (auto* t = outputs.as<ir::Tuple>()) block.outputs = std::move(t->items);
      else if (auto* l = outputs.as<ir::List>()) block.outputs = std::move(l->items);
      else block.outputs.push_back(std::move(outputs));
      continue;
    }
    if (op == "call_function") {
      if (PyObject_IsInstance(target.ptr(), words.higher_order.ptr()) == 1) {
        const std::string name = python_text(target.attr("name")());
        if (is_scope(name) && !evaluating_) {
          add_scope(graph_module, node, prefix, env, block);
          continue;
        }
        refuse(node, {.what = "the higher-order operator '" + name + "' is not imported", .because = "a graph has no control flow and no functions as arguments"});
      }
      if (target.is(words.getitem) && bind_item(node, env)) continue;
      if (!evaluating_) {
        nb::object value = meta_value(node);
        if (PyObject_IsInstance(target.ptr(), words.op_overload.ptr()) == 1) add_op(node, value, env, block);
        else add_symbolic(node, symbolic_name(target), value, env, block);
        continue;
      }
    }
    evaluate(graph_module, node, prefix, env, block);
  }
}

Imported FxWalk::take() {
  graph.inputs = std::move(lifted_inputs_);
  graph.inputs.insert(graph.inputs.end(), user_inputs_.begin(), user_inputs_.end());
  return {std::move(graph), std::move(lifted_)};
}

Imported import_fx(nb::handle graph_module, nb::handle example_inputs) {
  FxWalk walk(graph_module);
  if (PyObject_IsInstance(graph_module.ptr(), walk.words.graph_module.ptr()) != 1)
    throw ErrorException({.what = "from_fx takes a torch.fx.GraphModule, not " + python_text(graph_module.type().attr("__name__")), .hint = "trace it first: torch.export.export, make_fx or torch.fx.symbolic_trace"});
  walk.graph.name = "forward";
  std::vector<nb::object> examples;
  if (!example_inputs.is_none())
    for (nb::handle e : example_inputs) examples.push_back(nb::borrow(e));

  std::optional<trace::FakeMode> fake;
  if (!walk.results_are_known(graph_module)) {
    walk.evaluate_nodes();
    fake.emplace();
  }
  struct Leave { FxWalk& w; ~Leave() { w.leave_states(); } } leave{walk};
  Environment env;
  size_t position = 0;
  for (nb::handle node : nodes_of(graph_module)) {
    if (python_text(node.attr("op")) != "placeholder") continue;
    walk.add_user_input(node, position < examples.size() ? nb::handle(examples[position]) : nb::handle(), env);
    ++position;
  }
  if (examples.size() > position)
    throw ErrorException({.what = std::to_string(examples.size()) + " example inputs for a graph of " + std::to_string(position) + " placeholders"});
  walk.walk(graph_module, "", env, walk.graph.body);
  return walk.take();
}

Imported import_exported_program(nb::handle program) {
  nb::object graph_module = program.attr("graph_module"), signature = program.attr("graph_signature");
  FxWalk walk(graph_module);
  walk.graph.name = "forward";
  nb::object state = program.attr("state_dict"), constants = program.attr("constants");
  std::unordered_map<std::string, nb::object> specs;
  for (nb::handle spec : signature.attr("input_specs")) specs[python_text(spec.attr("arg").attr("name"))] = nb::borrow(spec);

  Environment env;
  std::unordered_map<std::string, ir::ValueId> by_target, by_name;   // what an output may write back to
  if (!walk.results_are_known(graph_module))
    throw ErrorException({.what = "the exported program calls Python functions", .because = "torch.export gives operators only", .hint = "import its graph_module with from_fx"});
  for (nb::handle node : nodes_of(graph_module)) {
    if (python_text(node.attr("op")) != "placeholder") continue;
    const std::string name = python_text(node.attr("name"));
    auto found = specs.find(name);
    const std::string kind = found == specs.end() ? "USER_INPUT" : python_text(found->second.attr("kind").attr("name"));
    if (kind == "USER_INPUT") {
      by_name[name] = walk.add_user_input(node, nb::handle(), env);
      continue;
    }
    if (kind != "PARAMETER" && kind != "BUFFER" && kind != "CONSTANT_TENSOR")
      walk.refuse(node, {.what = "an input of kind " + kind + " is not imported", .because = "it is an opaque object, no tensor"});
    const std::string target = python_text(found->second.attr("target"));
    nb::object tensor = state.attr("get")(target);
    if (tensor.is_none()) tensor = constants.attr("get")(target);
    if (!is_tensor(tensor.ptr())) walk.refuse(node, {.what = "the exported program has no data for '" + target + "'"});
    const ir::InputKind input_kind = kind == "PARAMETER" ? ir::InputKind::parameter : kind == "BUFFER" ? ir::InputKind::buffer : ir::InputKind::constant;
    const ir::ValueId id = walk.add_lifted(name, target, input_kind, tensor);
    by_target[target] = id;
    env[node.ptr()].argument = ir::ValueRef{id};
  }
  ir::Block& body = walk.graph.body;
  walk.walk(graph_module, "", env, body);

  std::vector<ir::Argument> user_outputs;
  size_t i = 0;
  for (nb::handle spec : signature.attr("output_specs")) {
    const std::string kind = python_text(spec.attr("kind").attr("name"));
    if (i >= body.outputs.size()) throw ErrorException({.what = "the exported program's signature has more outputs than its graph"});
    ir::Argument& output = body.outputs[i++];
    if (kind == "USER_OUTPUT" || kind == "LOSS_OUTPUT") {
      user_outputs.push_back(std::move(output));
      continue;
    }
    const bool to_input = kind == "USER_INPUT_MUTATION";
    if (!to_input && kind != "BUFFER_MUTATION" && kind != "PARAMETER_MUTATION") throw ErrorException({.what = "an output of kind " + kind + " is not imported"});
    const std::string target = python_text(spec.attr("target"));
    auto& targets = to_input ? by_name : by_target;
    auto found = targets.find(target);
    if (found == targets.end()) throw ErrorException({.what = "the exported program writes to '" + target + "', which is no input of it"});
    ir::Node node;
    node.target = "aten.copy_";
    node.args = {ir::ValueRef{found->second}, std::move(output)};
    node.results = {walk.graph.add_value(walk.graph.value(found->second).name + ".written", walk.graph.value(found->second).type)};
    node.returns = {ir::Node::kSingle};
    body.nodes.push_back(std::move(node));
  }
  body.outputs = std::move(user_outputs);
  return walk.take();
}

}  // namespace cutaway::fx
