#include <cmath>
#include <cstdint>

#include "app/fx/values.h"

#include <ATen/core/Tensor.h>
#include <nanobind/stl/string.h>

#include "app/casters/tensor_caster.h"
#include "core/tensor/convert.h"

namespace nb = nanobind;

namespace cutaway::fx {

using namespace casters;

namespace {
std::string text(nb::handle h) { return nb::cast<std::string>(nb::str(h)); }
std::string python_type_name(nb::handle h) { return nb::cast<std::string>(h.type().attr("__name__")); }
bool is_a(nb::handle h, nb::handle type) { return PyObject_IsInstance(h.ptr(), type.ptr()) == 1; }
bool has_type(nb::handle h, const nb::object& type) { return reinterpret_cast<PyObject*>(Py_TYPE(h.ptr())) == type.ptr(); }
}  // namespace

FxWords::FxWords() {
  nb::module_ torch = nb::module_::import_("torch");
  nb::module_ fx = nb::module_::import_("torch.fx");
  nb::module_ ops = nb::module_::import_("torch._ops");
  node = fx.attr("Node");
  graph_module = fx.attr("GraphModule");
  op_overload = ops.attr("OpOverload");
  op_overload_packet = ops.attr("OpOverloadPacket");
  higher_order = ops.attr("HigherOrderOperator");
  nn_module = torch.attr("nn").attr("Module");
  parameter = torch.attr("nn").attr("Parameter");
  getitem = nb::module_::import_("operator").attr("getitem");
  sym_int = torch.attr("SymInt");
  sym_float = torch.attr("SymFloat");
  sym_bool = torch.attr("SymBool");
  dtype = torch.attr("dtype");
  device = torch.attr("device");
  layout = torch.attr("layout");
  memory_format = torch.attr("memory_format");
  generator = torch.attr("Generator");
  torch_folder = text(nb::module_::import_("os.path").attr("dirname")(torch.attr("__file__"))) + "/";
}

// --- literals ---

base::Result<ir::Argument> to_argument(const FxWords& words, nb::handle h, Tuples tuples, const std::function<base::Result<ir::Argument>(nb::handle)>& node) {
  PyObject* o = h.ptr();
  if (o == Py_None) return ir::Argument(ir::None{});
  if (o == Py_Ellipsis) return ir::Argument(ir::Ellipsis{});
  if (PyBool_Check(o)) return ir::Argument(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) return base::Error{.what = "the integer " + text(h) + " does not fit into 64 bits"};
    return ir::Argument(int64_t{v});
  }
  if (PyFloat_Check(o)) return ir::Argument(PyFloat_AS_DOUBLE(o));
  if (PyComplex_Check(o)) return ir::Argument(std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (PyUnicode_Check(o)) return ir::Argument(nb::cast<std::string>(h));
  if (is_a(h, words.node)) return node(h);
  if (PyList_Check(o) || PyTuple_Check(o)) {
    std::vector<ir::Argument> items;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    items.reserve(n);
    for (Py_ssize_t i = 0; i < n; ++i) {
      CUTAWAY_TRY_ASSIGN(ir::Argument item, to_argument(words, PySequence_Fast_GET_ITEM(o, i), tuples, node));
      items.push_back(std::move(item));
    }
    if (PyTuple_Check(o) && tuples == Tuples::keep) return ir::Argument(ir::Tuple{std::move(items)});
    return ir::Argument(ir::List{std::move(items)});
  }
  if (PySlice_Check(o)) {
    ir::Slice slice;
    for (const char* part : {"start", "stop", "step"}) {
      nb::object p = h.attr(part);
      CUTAWAY_TRY_ASSIGN(ir::Argument a, to_argument(words, p, tuples, node));
      slice.parts.push_back(std::move(a));
    }
    return ir::Argument(std::move(slice));
  }
  if (PyDict_Check(o)) {
    ir::Dict dict;
    for (auto [key, value] : nb::cast<nb::dict>(h)) {
      if (!PyUnicode_Check(key.ptr())) return base::Error{.what = "a dict with a key of type " + python_type_name(key) + " has no literal", .because = "only strings are keys in a graph"};
      CUTAWAY_TRY_ASSIGN(ir::Argument a, to_argument(words, value, tuples, node));
      dict.items.emplace_back(nb::cast<std::string>(key), std::move(a));
    }
    return ir::Argument(std::move(dict));
  }
  if (has_type(h, words.dtype)) return ir::Argument(static_cast<ir::DType>(to_ivalue(h).toInt()));
  if (has_type(h, words.device)) return ir::Argument(tensor::from_aten(to_ivalue(h).toDevice()));
  if (has_type(h, words.layout)) return ir::Argument(static_cast<ir::Layout>(to_ivalue(h).toInt()));
  if (has_type(h, words.memory_format)) return ir::Argument(static_cast<ir::MemoryFormat>(to_ivalue(h).toInt()));
  if (is_a(h, words.sym_int)) return [&]() -> ir::Argument {
    ir::Dim d = Dims().from_sym_int(h);
    if (auto n = d.number()) return *n;
    return d;
  }();
  if (is_a(h, words.generator)) return base::Error{.what = "a torch.Generator object as an argument has no literal", .because = "its state would be lost", .hint = "use the default generator and torch.manual_seed"};
  if (is_tensor(o)) return base::Error{.what = "a tensor stands among the arguments as an object, not as a node of the graph", .hint = "register it as a buffer of the module"};
  if (nb::hasattr(h, "__module__") && nb::hasattr(h, "__qualname__")) {   // a function or a class
    const std::string module = text(h.attr("__module__"));
    if (module == "torch" || module.rfind("torch.", 0) == 0 || module == "builtins") return ir::Argument(ir::NamedObject{module + "." + text(h.attr("__qualname__"))});
  }
  return base::Error{.what = "an argument of type " + python_type_name(h) + " has no literal", .because = "a graph holds numbers, strings, torch's small types and lists of them"};
}

nb::object from_argument(const ir::Argument& a, const std::function<nb::object(ir::ValueId)>& value, const std::function<nb::object(const ir::Dim&)>& symbol,
                         const std::function<nb::object(std::complex<double>)>& wordless) {
  // repr() of these is "(nan+infj)" or "(-0-0j)": no names, or another number.
  const auto is_wordless = [](std::complex<double> c) {
    const auto is_odd = [](double d) { return !std::isfinite(d) || (d == 0 && std::signbit(d)); };
    return is_odd(c.real()) || is_odd(c.imag());
  };
  nb::module_ torch = nb::module_::import_("torch");
  auto items = [&](const std::vector<ir::Argument>& from) {
    nb::list l;
    for (auto& i : from) l.append(from_argument(i, value, symbol, wordless));
    return l;
  };
  return std::visit([&](const auto& v) -> nb::object {
    using T = std::decay_t<decltype(v)>;
    if constexpr (std::is_same_v<T, ir::None>) return nb::none();
    else if constexpr (std::is_same_v<T, ir::Ellipsis>) return nb::ellipsis();
    else if constexpr (std::is_same_v<T, ir::ValueRef>) return value(v.id);
    else if constexpr (std::is_same_v<T, bool>) return nb::bool_(v);
    else if constexpr (std::is_same_v<T, int64_t>) return nb::int_(v);
    else if constexpr (std::is_same_v<T, double>) return nb::float_(v);
    else if constexpr (std::is_same_v<T, std::complex<double>>) return wordless && is_wordless(v) ? wordless(v) : nb::steal(PyComplex_FromDoubles(v.real(), v.imag()));
    else if constexpr (std::is_same_v<T, std::string>) return nb::str(v.data(), v.size());
    else if constexpr (std::is_same_v<T, ir::DType>) return torch.attr(std::string(c10::getDtypeNames(tensor::to_aten(v)).first).c_str());
    else if constexpr (std::is_same_v<T, ir::Layout>) return torch.attr(v == ir::Layout::mkldnn ? "_mkldnn" : std::string(ir::layout_name(v)).c_str());
    else if constexpr (std::is_same_v<T, ir::MemoryFormat>) return torch.attr(std::string(ir::memory_format_name(v)).c_str());
    else if constexpr (std::is_same_v<T, ir::Device>) return torch.attr("device")(v.text());
    else if constexpr (std::is_same_v<T, ir::List>) return items(v.items);
    else if constexpr (std::is_same_v<T, ir::Tuple>) return nb::tuple(items(v.items));
    else if constexpr (std::is_same_v<T, ir::Slice>) {
      nb::object p[3];
      for (size_t i = 0; i < 3; ++i) p[i] = i < v.parts.size() ? from_argument(v.parts[i], value, symbol, wordless) : nb::none();
      return nb::steal(PySlice_New(p[0].ptr(), p[1].ptr(), p[2].ptr()));
    } else if constexpr (std::is_same_v<T, ir::Dict>) {
      nb::dict d;
      for (auto& [k, i] : v.items) d[nb::str(k.data(), k.size())] = from_argument(i, value, symbol, wordless);
      return d;
    } else if constexpr (std::is_same_v<T, ir::NamedObject>) {
      nb::object found = v.name.rfind("builtins.", 0) == 0 ? nb::object(nb::module_::import_("builtins")) : nb::object(torch);
      size_t at = v.name.find('.');
      while (at != std::string::npos) {
        const size_t next = v.name.find('.', at + 1);
        found = found.attr(v.name.substr(at + 1, next == std::string::npos ? next : next - at - 1).c_str());
        at = next;
      }
      return found;
    } else if constexpr (std::is_same_v<T, ir::Dim>) {
      if (symbol) return symbol(v);
      throw nb::value_error(("the symbolic integer " + v.text() + " stands for no value of the graph").c_str());
    } else {
      throw nb::value_error("a named random state has no counterpart in an fx graph");
    }
  }, a.v);
}

// --- symbolic sizes ---

std::optional<ir::Dim> read_sympy(nb::handle e, const std::function<std::optional<ir::Dim>(nb::handle)>& other) {
  const std::string kind = python_type_name(e);
  auto leaf = [](ir::SymExpr x) { return std::make_shared<const ir::SymExpr>(std::move(x)); };
  auto as_expr = [&](const ir::Dim& d) { return d.is_symbolic() ? d.expr() : leaf({.kind = ir::SymExpr::Kind::constant, .constant = d.value()}); };
  if (nb::cast<bool>(nb::bool_(e.attr("is_Integer")))) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(nb::int_(e).ptr(), &overflow);
    if (!overflow) return ir::Dim(v);
  }
  using K = ir::SymExpr::Kind;
  std::optional<K> op;
  if (kind == "Add") op = K::add;
  else if (kind == "Mul") op = K::mul;
  else if (kind == "FloorDiv" || kind == "CleanDiv") op = K::floor_div;
  else if (kind == "Mod" || kind == "PythonMod") op = K::mod;
  else if (kind == "Max") op = K::max;
  else if (kind == "Min") op = K::min;
  else if (kind == "PowByNatural" || kind == "Pow") {
    nb::object args = e.attr("args");
    nb::object power = args[1];
    if (nb::cast<bool>(nb::bool_(power.attr("is_Integer")))) {
      const int n = nb::cast<int>(nb::int_(power));
      if (n >= 2 && n <= 8) {
        const std::optional<ir::Dim> base = read_sympy(args[0], other);
        if (!base) return std::nullopt;
        return ir::Dim(leaf({.kind = K::mul, .operands = std::vector(static_cast<size_t>(n), as_expr(*base))}));
      }
    }
  }
  if (op) {
    ir::SymExpr x{.kind = *op};
    bool whole = true;
    for (nb::handle arg : e.attr("args")) {
      if (nb::cast<bool>(nb::bool_(arg.attr("is_Rational"))) && !nb::cast<bool>(nb::bool_(arg.attr("is_Integer")))) whole = false;   // s0*1/2 is no integer expression of ours
      if (!whole) break;
      const std::optional<ir::Dim> operand = read_sympy(arg, other);
      if (!operand) return std::nullopt;
      x.operands.push_back(as_expr(*operand));
    }
    if (whole && x.operands.size() >= 2) return ir::Dim(leaf(std::move(x)));
  }
  return other(e);
}

ir::Dim Dims::from_sympy(nb::handle e) {
  return *read_sympy(e, [&](nb::handle part) -> std::optional<ir::Dim> {
    if (nb::cast<bool>(nb::bool_(part.attr("is_Symbol")))) return ir::Dim::symbol(text(part.attr("name")));
    std::string& name = opaque_[text(part)];
    if (name.empty()) name = "expr" + std::to_string(opaque_.size() - 1);
    return ir::Dim::symbol(name);
  });
}

ir::Dim Dims::from_sym_int(nb::handle s) {
  if (PyLong_Check(s.ptr())) return ir::Dim(nb::cast<int64_t>(s));
  nb::object node = s.attr("node");
  nb::object constant = node.attr("maybe_as_int")();
  if (!constant.is_none()) return ir::Dim(nb::cast<int64_t>(constant));
  return from_sympy(node.attr("expr"));
}

// --- types ---

base::Result<ir::Type> type_of_value(const FxWords& words, Dims& dims, nb::handle h) {
  PyObject* o = h.ptr();
  using Kind = ir::Type::Kind;
  if (o == Py_None) return ir::Type::of(Kind::none);
  if (is_tensor(o)) {
    const at::Tensor& t = unwrap_tensor(o);
    if (!t.defined()) return ir::Type::of(Kind::none);
    if (t.is_nested()) return base::Error{.what = "a nested tensor is not imported", .because = "its sizes are no list of numbers"};
    if (!t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return ir::Type::of(tensor::type_of(t));
    ir::TensorType type;
    type.dtype = tensor::from_aten(t.scalar_type());
    type.device = tensor::from_aten(t.device());
    type.requires_grad = t.requires_grad();
    type.layout = tensor::from_aten(t.layout());
    for (nb::handle s : h.attr("shape")) type.sizes.push_back(dims.from_sym_int(s));
    if (t.layout() == at::kStrided)
      for (nb::handle s : h.attr("stride")()) type.strides.push_back(dims.from_sym_int(s));
    return ir::Type::of(std::move(type));
  }
  if (PyBool_Check(o) || is_a(h, words.sym_bool)) return ir::Type::of(Kind::boolean);
  if (PyLong_Check(o) || is_a(h, words.sym_int)) return ir::Type::of(Kind::integer);
  if (PyFloat_Check(o) || is_a(h, words.sym_float)) return ir::Type::of(Kind::floating);
  if (PyComplex_Check(o)) return ir::Type::of(Kind::complex);
  if (PyUnicode_Check(o)) return ir::Type::of(Kind::string);
  if (has_type(h, words.device)) return ir::Type::of(Kind::device);
  if (has_type(h, words.dtype)) return ir::Type::of(Kind::dtype);
  return base::Error{.what = "a value of type " + python_type_name(h) + " is not imported", .because = "it is an opaque object: no graph can hold or run it"};
}

// --- locations ---

namespace {
// Dynamo spells a module path as source code: L['self'].encoder._modules['layer'][0]. Ours is what named_modules() says.
std::string module_path(std::string p) {
  if (auto at = p.find("]."); p.rfind("L[", 0) == 0 && at != std::string::npos) p = p.substr(at + 2);
  else if (p.rfind("L[", 0) == 0) return {};
  std::string out;
  for (size_t i = 0; i < p.size();) {
    if (p.compare(i, 9, "_modules[") == 0) { i += 8; if (!out.empty() && out.back() == '.') out.pop_back(); continue; }
    const char c = p[i++];
    if (c == '[') { if (!out.empty()) out += '.'; }
    else if (c == ']' || c == '\'' || c == '"') continue;
    else out += c;
  }
  return out;
}
}  // namespace

ir::Location location_of(const FxWords& words, nb::handle fx_node) {
  ir::Location location;
  nb::object meta = fx_node.attr("meta");
  nb::object trace = meta.attr("get")("stack_trace");
  std::string class_name;
  nb::object stack = meta.attr("get")("nn_module_stack");
  if (PyDict_Check(stack.ptr())) {
    for (auto [key, entry] : nb::cast<nb::dict>(stack)) {   // the last is the innermost
      if (!PyTuple_Check(entry.ptr()) || nb::len(entry) != 2) continue;
      location.module = module_path(text(entry[0]));
      class_name = PyUnicode_Check(nb::object(entry[1]).ptr()) ? text(entry[1]) : text(nb::object(entry[1]).attr("__name__"));
      if (auto dot = class_name.rfind('.'); dot != std::string::npos) class_name = class_name.substr(dot + 1);
    }
  }
  if (!PyUnicode_Check(trace.ptr())) return location;
  const std::string frames = text(trace);
  auto read = [&](size_t at) {   // at: position of `File "`
    const size_t name = at + 6, end = frames.find('"', name), line = frames.find(", line ", name);
    if (end == std::string::npos || line == std::string::npos) return;
    location.file = frames.substr(name, end - name);
    location.line = std::atoi(frames.c_str() + line + 7);
    const size_t in = frames.find(", in ", line), stop = frames.find('\n', line);
    location.function = in != std::string::npos && in < stop ? frames.substr(in + 5, stop == std::string::npos ? stop : stop - in - 5) : "";
  };
  size_t last = std::string::npos, user = std::string::npos;
  for (size_t at = frames.find("File \""); at != std::string::npos; at = frames.find("File \"", at + 1)) {
    last = at;
    if (frames.compare(at + 6, words.torch_folder.size(), words.torch_folder) != 0) user = at;
  }
  if (user != std::string::npos) read(user);
  else if (last != std::string::npos) read(last);
  if (location.function == "forward" && !class_name.empty()) location.function = class_name + ".forward";
  return location;
}

std::string place_of(const ir::Location& l, nb::handle fx_node) {
  if (l.is_known()) return l.file + ":" + std::to_string(l.line);
  return "fx node " + text(fx_node.attr("name"));
}

}  // namespace cutaway::fx
