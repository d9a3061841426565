#include "app/fx/export.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "app/casters/errors.h"
#include "app/fx/values.h"
#include "compiler/frames/marks.h"
#include "core/script/callable.h"

namespace nb = nanobind;

namespace cutaway::fx {

using namespace casters;

namespace {

class FxWriter {
 public:
  FxWriter(const ir::Graph& graph, nb::handle lifted, std::optional<bool> grad_enabled) : from_(graph), lifted_(nb::borrow(lifted)), grad_enabled_(grad_enabled) {}

  nb::object write() {
    for (const ir::Input& input : from_.inputs)
      if (input.kind == ir::InputKind::user || lifted_.is_none()) values_[input.value] = fx_.attr("placeholder")(name_of(input.value));
    size_t position = 0;
    for (const ir::Input& input : from_.inputs)
      if (input.kind != ir::InputKind::user && !lifted_.is_none()) values_[input.value] = attribute(input, lifted_[position++]);
    block(from_.body);
    nb::list outputs;
    for (const ir::Argument& a : from_.body.outputs) outputs.append(python(a));
    fx_.attr("output")(nb::tuple(outputs));
    for (auto it = items_.rbegin(); it != items_.rend(); ++it)   // items that nobody reads: of several results, or only asked for their sizes
      if (nb::len(nb::object(it->attr("users"))) == 0) fx_.attr("erase_node")(*it);
    fx_.attr("lint")();
    return nb::module_::import_("torch.fx").attr("GraphModule")(root_, fx_);
  }

 private:
  std::string name_of(ir::ValueId id) const {
    std::string name = from_.value(id).name;
    for (char& c : name) if (c == '.') c = '_';
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "v" + name;
    return name;
  }
  nb::object python(const ir::Argument& a) {
    return from_argument(a, [&](ir::ValueId id) -> nb::object {
      auto found = values_.find(id);
      if (found == values_.end()) throw ErrorException({.what = "%" + from_.value(id).name + " is used before it is defined"});
      return found->second;
    }, [&](const ir::Dim& d) { return symbolic(d); },
    [&](std::complex<double> c) -> nb::object { return fx_.attr("call_function")(nb::module_::import_("builtins").attr("complex"), nb::make_tuple(c.real(), c.imag())); });
  }

  // Integers that depend on sizes are computed in the graph, from `size` of the input that shows the symbol: backends then meet tensors alone,
  // and torch's own symbolic integers come out of these calls where they trace with symbolic shapes.
  nb::object symbolic(const ir::Dim& d) {
    if (auto n = d.number()) return nb::int_(*n);
    return symbolic(*d.expr());
  }
  nb::object symbolic(const ir::SymExpr& e) {
    using Kind = ir::SymExpr::Kind;
    if (e.kind == Kind::constant) return nb::int_(e.constant);
    const std::string key = ir::Dim(std::make_shared<const ir::SymExpr>(e)).text();
    if (auto found = sizes_.find(key); found != sizes_.end()) return found->second;
    nb::object made;
    if (e.kind == Kind::symbol) {
      made = size_of_input(e.symbol);
    } else {
      const bool is_choice = e.kind == Kind::min || e.kind == Kind::max;
      const char* name = e.kind == Kind::add ? "add" : e.kind == Kind::mul ? "mul" : e.kind == Kind::floor_div ? "floordiv" : e.kind == Kind::mod ? "mod" : e.kind == Kind::min ? "sym_min" : "sym_max";
      nb::object function = nb::module_::import_(is_choice ? "torch" : "operator").attr(name);
      made = symbolic(*e.operands.at(0));
      for (size_t i = 1; i < e.operands.size(); ++i) made = fx_.attr("call_function")(function, nb::make_tuple(made, symbolic(*e.operands[i])));
    }
    sizes_.emplace(key, made);
    return made;
  }
  nb::object size_of_input(const std::string& symbol) {
    const ir::Dim wanted = ir::Dim::symbol(symbol);
    for (const ir::Input& input : from_.inputs) {
      const ir::Value& v = from_.value(input.value);
      if (v.type.kind == ir::Type::Kind::integer && v.name == symbol) return values_.at(input.value);
      for (size_t i = 0; v.type.is_tensor() && i < v.type.tensor.sizes.size(); ++i)
        if (v.type.tensor.sizes[i] == wanted) return fx_.attr("create_node")("call_method", "size", nb::make_tuple(values_.at(input.value), i), nb::dict(), symbol);
    }
    throw ErrorException({.what = "the symbol " + symbol + " is told by no input", .hint = "pass it as an input"});
  }

  // The qualified name is the path in a tree of modules, as it was in the model.
  nb::object attribute(const ir::Input& input, nb::handle tensor) {
    std::string path = input.qualified_name.empty() ? name_of(input.value) : input.qualified_name;
    nb::object owner = root_;
    nb::object module_type = nb::module_::import_("torch.nn").attr("Module");
    size_t at = 0;
    for (size_t dot; (dot = path.find('.', at)) != std::string::npos; at = dot + 1) {
      const std::string part = path.substr(at, dot - at);
      if (!nb::hasattr(owner, part.c_str())) owner.attr("add_module")(part, module_type());
      owner = owner.attr(part.c_str());
    }
    const std::string last = path.substr(at);
    nb::object parameter = nb::module_::import_("torch.nn").attr("Parameter");
    if (PyObject_IsInstance(tensor.ptr(), parameter.ptr()) == 1) owner.attr("register_parameter")(last, tensor);
    else owner.attr("register_buffer")(last, tensor);
    return fx_.attr("create_node")("get_attr", path, nb::tuple(), nb::dict(), name_of(input.value));
  }

  // Neighbours under one state share its statements, as they did in the program.
  void block(const ir::Block& b) {
    ir::RegionState open;
    for (const ir::Node& n : b.nodes) {
      const ir::RegionState state = n.kind == ir::Node::Kind::op ? ir::RegionState{} : n.state;
      if (!(state == open)) {
        if (!open.is_default()) leave();
        if (!state.is_default()) enter(state);
        open = state;
      }
      node(n);
    }
    if (!open.is_default()) leave();
  }

  nb::object create(const ir::Node& n, const char* op, const nb::object& target, const nb::object& args, const nb::object& kwargs) {
    nb::object name = nb::none();
    if (n.results.size() == 1 && n.returns == std::vector<int32_t>{ir::Node::kSingle}) name = nb::str(name_of(n.results[0]).c_str());
    nb::object made = fx_.attr("create_node")(op, target, args, kwargs, name);
    if (n.location != ir::kNoLocation && n.location < from_.locations.size()) {
      const ir::Location& l = from_.locations[n.location];
      made.attr("meta")["stack_trace"] = "  File \"" + l.file + "\", line " + std::to_string(l.line) + ", in " + l.function + "\n";
    }
    return made;
  }

  void bind_results(const ir::Node& n, const nb::object& made) {
    nb::object getitem = nb::module_::import_("operator").attr("getitem");
    auto item = [&](const nb::object& of, size_t i, nb::object name) {
      items_.push_back(fx_.attr("create_node")("call_function", getitem, nb::make_tuple(of, i), nb::dict(), name));
      return items_.back();
    };
    auto named = [&](ir::ValueId id) { return nb::object(nb::str(name_of(id).c_str())); };
    if (n.returns.size() == 1 && n.returns[0] == ir::Node::kSingle) {
      values_[n.results[0]] = made;
      return;
    }
    size_t next = 0;
    const bool one_list = n.returns.size() == 1;
    for (size_t i = 0; i < n.returns.size(); ++i) {
      if (n.returns[i] == ir::Node::kSingle) {
        values_[n.results[next]] = item(made, i, named(n.results[next]));
        ++next;
        continue;
      }
      const nb::object list = one_list ? made : item(made, i, nb::none());
      for (int32_t j = 0; j < n.returns[i]; ++j, ++next) values_[n.results[next]] = item(list, static_cast<size_t>(j), named(n.results[next]));
    }
  }

  nb::object import_callable(const script::Callable& c) {
    nb::object found = nb::module_::import_(c.module.substr(0, c.module.find('.')).c_str());
    for (size_t dot = c.module.find('.'); dot != std::string::npos;) {
      const size_t next = c.module.find('.', dot + 1);
      found = found.attr(c.module.substr(dot + 1, next == std::string::npos ? next : next - dot - 1).c_str());
      dot = next;
    }
    return nb::hasattr(found, c.name.c_str()) ? nb::object(found.attr(c.name.c_str())) : nb::object();
  }

  nb::object operator_of(const ir::Node& n) {
    if (auto symbolic = script::symbolic_function(n.target)) return import_callable(*symbolic);
    auto name = ir::split_op_name(n.target);
    nb::object found;
    if (name) {
      const size_t colons = name->name.find("::");
      nb::object space = nb::module_::import_("torch").attr("ops").attr(name->name.substr(0, colons).c_str());
      const std::string op = name->name.substr(colons + 2), overload = name->overload.empty() ? "default" : name->overload;
      if (nb::hasattr(space, op.c_str()) && nb::hasattr(space.attr(op.c_str()), overload.c_str())) found = space.attr(op.c_str()).attr(overload.c_str());
    }
    if (!found.is_valid()) throw ErrorException({.what = "torch has no operator " + n.target, .hint = "import the library that defines it first"});
    return found;
  }

  void node(const ir::Node& n) {
    if (n.kind != ir::Node::Kind::op) return captured(n);
    bind_results(n, create(n, "call_function", operator_of(n), arguments(n), keywords(n)));
  }

  nb::object arguments(const ir::Node& n) {
    nb::list l;
    for (const ir::Argument& a : n.args) l.append(python(a));
    return nb::tuple(l);
  }
  nb::object keywords(const ir::Node& n) {
    nb::dict d;
    for (auto& [k, a] : n.kwargs) d[k.c_str()] = python(a);
    return d;
  }

  void captured(const ir::Node& n) {
    if (n.kind == ir::Node::Kind::call) {
      if (PyObject* known = frames::named_callable(n.target)) {   // the very object that was captured: a function of the user's, an operator
        bind_results(n, create(n, "call_function", nb::borrow(known), arguments(n), keywords(n)));
        return;
      }
      if (auto callable = script::callable_from_torch(n.target)) {
        if (callable->kind == script::Callable::Kind::method) {
          bind_results(n, create(n, "call_method", nb::str(callable->name.c_str()), arguments(n), keywords(n)));
          return;
        }
        if (nb::object function = import_callable(*callable); function.is_valid()) {
          const nb::object made = create(n, "call_function", function, arguments(n), keywords(n));
          const bool is_view = std::ranges::none_of(n.regions.at(0).nodes, [](const ir::Node& x) { return x.target.starts_with("aten.index"); });   // else it may raise on real data
          if (n.target == "operator.getitem" && is_view) items_.push_back(made);
          bind_results(n, made);
          return;
        }
      }
    }
    const ir::Block& region = n.regions.at(0);
    block(region);
    for (size_t i = 0; i < n.results.size(); ++i) values_[n.results[i]] = python(region.outputs.at(i));
  }

  // State of a region, as statements around its nodes.
  void enter(const ir::RegionState& s) {
    nb::module_ torch = nb::module_::import_("torch");
    auto call = [&](nb::object f, nb::object args) { return fx_.attr("call_function")(f, args); };
    std::vector<std::pair<nb::object, nb::object>> undo;
    if (s.inference_mode) {   // first, because it switches grad mode as well
      nb::object modes = nb::module_::import_("torch.autograd.grad_mode");
      nb::object context = call(modes.attr("_enter_inference_mode"), nb::make_tuple(*s.inference_mode));
      undo.emplace_back(modes.attr("_exit_inference_mode"), nb::make_tuple(context));
    }
    if (s.grad_enabled) {
      const bool known = grad_enabled_ && undo_.empty();
      nb::object before = known ? nb::object(nb::bool_(*grad_enabled_)) : call(torch.attr("is_grad_enabled"), nb::tuple());
      call(torch.attr("_C").attr("_set_grad_enabled"), nb::make_tuple(*s.grad_enabled));
      undo.emplace_back(torch.attr("_C").attr("_set_grad_enabled"), nb::make_tuple(before));
    }
    nb::object autocast = nb::module_::import_("torch.amp.autocast_mode");
    for (auto& a : s.autocast) {
      nb::object dtype = from_argument(ir::Argument(a.dtype), {});
      nb::object context = call(autocast.attr("_enter_autocast"), nb::make_tuple(a.device.type, dtype, a.enabled, a.cache));
      undo.emplace_back(autocast.attr("_exit_autocast"), nb::make_tuple(context));
    }
    undo_.push_back(std::move(undo));
  }
  void leave() {
    for (auto it = undo_.back().rbegin(); it != undo_.back().rend(); ++it) fx_.attr("call_function")(it->first, it->second);
    undo_.pop_back();
  }

  const ir::Graph& from_;
  nb::object lifted_;
  std::optional<bool> grad_enabled_;   // around the graph
  nb::object fx_ = nb::module_::import_("torch.fx").attr("Graph")();
  nb::object root_ = nb::module_::import_("torch.nn").attr("Module")();
  std::unordered_map<ir::ValueId, nb::object> values_;
  std::unordered_map<std::string, nb::object> sizes_;   // text of an expression -> its node
  std::vector<std::vector<std::pair<nb::object, nb::object>>> undo_;
  std::vector<nb::object> items_;
};

}  // namespace

nb::object export_fx(const ir::Graph& graph, nb::handle lifted, std::optional<bool> grad_enabled) { return FxWriter(graph, lifted, grad_enabled).write(); }

}  // namespace cutaway::fx
