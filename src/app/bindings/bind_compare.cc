// `same` on Python values: walks containers, output classes and numpy values as Python sees them, and hands tensors to diagnosis/compare.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "app/bindings/bindings.h"
#include "app/casters/tensor_caster.h"
#include "diagnosis/compare/same_values.h"
#include "diagnosis/compare/wording.h"
#include "diagnosis/report/notebook.h"

namespace nb = nanobind;

namespace cutaway::bindings {
namespace {

using namespace cutaway::compare;

/// Types that are told apart, looked up once. Never freed: the interpreter may be gone by then.
struct Types {
  nb::object deque = nb::module_::import_("collections").attr("deque");
  nb::object torch = nb::module_::import_("torch");
  nb::object parameter_list = torch.attr("nn").attr("ParameterList");
  nb::object fake_tensor = nb::module_::import_("torch._subclasses.fake_tensor").attr("FakeTensor");
  nb::object is_dataclass = nb::module_::import_("dataclasses").attr("is_dataclass");
  nb::tuple by_equality = nb::make_tuple(torch.attr("device"), torch.attr("dtype"), torch.attr("layout"), torch.attr("memory_format"));
  std::vector<nb::object> numpy_scalars;
  nb::object ndarray;
  /// Not imported: a program that has not done so has no values of it.
  void find_numpy() {
    const nb::object numpy = nb::module_::import_("sys").attr("modules").attr("get")("numpy");
    if (numpy.is_none()) return;
    ndarray = numpy.attr("ndarray");
    for (const char* name : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"})
      numpy_scalars.push_back(numpy.attr(name));
  }
  bool is_numpy_scalar(nb::handle h) const {
    return std::any_of(numpy_scalars.begin(), numpy_scalars.end(), [&](const nb::object& t) { return h.type().is(t); });
  }
  static const Types& get() {
    static Types* types = new Types();
    if (!types->ndarray.is_valid()) types->find_numpy();
    return *types;
  }
};

std::string class_name(nb::handle h) { return nb::cast<std::string>(h.type().attr("__name__")); }
bool is_instance(nb::handle h, nb::handle type) {
  const int r = PyObject_IsInstance(h.ptr(), type.ptr());
  if (r < 0) throw nb::python_error();
  return r == 1;
}
std::string repr_of(nb::handle h) {
  constexpr size_t longest = 120;
  std::string text = nb::cast<std::string>(nb::repr(h));
  if (text.size() > longest) text = text.substr(0, longest) + "…";
  return text;
}
bool python_equal(nb::handle a, nb::handle b) {
  const int r = PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ);   // an object is equal to itself, NaN too; the callers' types have no such value
  if (r < 0) throw nb::python_error();
  return r == 1;
}

/// Classes that torch's `same` compares by their attributes, by name: they come from libraries that need not be installed.
bool compares_by_attributes(const std::string& name) {
  static constexpr std::array names = {"MaskedLMOutput", "Seq2SeqLMOutput", "CausalLMOutputWithCrossAttentions", "LongformerMaskedLMOutput", "Instances",
                                       "SquashedNormal", "Boxes", "Normal", "TanhTransform", "Foo", "Variable"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

class PythonWalk {
 public:
  void visit(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    if (Py_EnterRecursiveCall(" while comparing nested values")) throw nb::python_error();
    struct Leave { ~Leave() { Py_LeaveRecursiveCall(); } } leave;
    if (f.is_none()) f = a;   // as torch: no fp64 reference means the reference itself
    const Types& types = Types::get();
    PyObject* p = a.ptr();
    if (is_tensor(p) || PyFloat_Check(p) || PyComplex_Check(p)) return visit_numbers(a, b, f, options, path);
    if (is_sequence(a)) return visit_sequence(a, b, f, options, path);
    const std::string name = class_name(a);
    if (name == "QuestionAnsweringModelOutput") {   // by the loss alone: the logits are known to be noisy
      if (!a.type().is(b.type())) return mismatch(a, b, path);
      return visit_attribute("loss", a, b, f, options, path);
    }
    if (PyDict_Check(p)) return visit_dict(a, b, f, options, path);
    if (PyAnySet_Check(p)) {
      if (!PyAnySet_Check(b.ptr())) return mismatch(a, b, path);
      return decide(python_equal(a, b), a, b, Options(), path);
    }
    if (p == Py_None || PyUnicode_Check(p) || PyLong_Check(p) || PyBytes_Check(p) || is_instance(a, types.by_equality)) return visit_plain(a, b, options, path);
    if (types.is_numpy_scalar(a)) return visit_numpy_scalar(a, b, options, path);
    if (types.ndarray.is_valid() && a.type().is(types.ndarray)) return visit_ndarray(a, b, f, options, path);
    if (compares_by_attributes(name) || is_dataclass(a)) {
      if (!a.type().is(b.type())) return mismatch(a, b, path);
      for (nb::handle key : nb::cast<nb::dict>(a.attr("__dict__")).keys()) visit_attribute(nb::cast<std::string>(key), a, b, f, as_torch_passes_on(options), path);
      return;
    }
    add(Outcome::refused, "there is no rule for values of type " + name, path);
  }

  /// The parts of two lists under names of their own, as the results of a run.
  void visit_named(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::vector<std::string>& names) {
    const nb::list x(nb::borrow(a)), y(nb::borrow(b)), z = f.is_none() ? nb::list() : nb::list(nb::borrow(f));
    if (x.size() != y.size()) return add(Outcome::wrong, length_text(x.size(), y.size()), "out");
    for (size_t i = 0; i < x.size(); ++i)
      visit(x[i], y[i], i < z.size() ? nb::object(z[i]) : nb::none(), options, i < names.size() ? names[i] : path_item("out", i));
  }

  Verdict finish(std::string root) { return std::move(found_).finish(std::move(root)); }

 private:
  static bool is_sequence(nb::handle h) {
    const Types& types = Types::get();
    return PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()) || is_instance(h, types.deque) || is_instance(h, types.parameter_list);
  }
  static bool is_dataclass(nb::handle h) {
    return !PyType_Check(h.ptr()) && nb::hasattr(h, "__dict__") && nb::cast<bool>(Types::get().is_dataclass(h));
  }
  /// Torch hands these three down through lists and dicts, and not through arrays and attributes.
  static Options as_torch_passes_on(Options o) {
    const Options standard;
    o.force_max_multiplier = standard.force_max_multiplier;
    o.use_iou_for_bool = standard.use_iou_for_bool;
    o.iou_threshold = standard.iou_threshold;
    return o;
  }
  static std::string length_text(size_t a, size_t b) {
    return "another length: the reference has " + count_text(static_cast<int64_t>(a)) + " parts, the result " + count_text(static_cast<int64_t>(b));
  }
  void add(Outcome outcome, std::string reason, const std::string& path) {
    Verdict v;
    v.outcome = outcome;
    v.path = path;
    v.reason = std::move(reason);
    found_.add(std::move(v));
  }
  void mismatch(nb::handle a, nb::handle b, const std::string& path) {
    add(Outcome::wrong, "another type: the reference is " + class_name(a) + ", the result " + class_name(b), path);
  }
  void decide(bool equal, nb::handle a, nb::handle b, const Options& options, const std::string& path) {
    found_.add(equal ? same_by_equality(true, "", "", options, path) : same_by_equality(false, repr_of(a), repr_of(b), options, path));
  }

  void visit_sequence(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    if (!is_sequence(b)) return mismatch(a, b, path);
    const nb::list x(nb::borrow(a)), y(nb::borrow(b)), z = is_sequence(f) ? nb::list(nb::borrow(f)) : nb::list();
    if (x.size() != y.size()) return add(Outcome::wrong, length_text(x.size(), y.size()), path);
    const nb::object fields = nb::getattr(a, "_fields", nb::none());   // of a named tuple
    const bool named = PyTuple_Check(fields.ptr()) && nb::len(fields) == x.size();
    for (size_t i = 0; i < x.size(); ++i)
      visit(x[i], y[i], i < z.size() ? nb::object(z[i]) : nb::none(), options, named ? path + "." + nb::cast<std::string>(fields[i]) : path_item(path, static_cast<int64_t>(i)));
  }

  void visit_dict(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    if (!PyDict_Check(b.ptr())) return mismatch(a, b, path);
    std::string missing, extra;
    const auto list_keys = [](nb::handle from, nb::handle in, std::string& out) {
      for (auto [key, value] : nb::borrow<nb::dict>(from))
        if (PyDict_Contains(in.ptr(), key.ptr()) != 1) out += (out.empty() ? "" : ", ") + repr_of(key);
    };
    list_keys(a, b, missing);
    list_keys(b, a, extra);
    if (!missing.empty() || !extra.empty())
      return add(Outcome::wrong, "other keys:" + (missing.empty() ? std::string() : " the result lacks " + missing) + (extra.empty() ? std::string() : std::string(missing.empty() ? "" : ";") + " the reference lacks " + extra), path);
    const bool is_output_class = !PyDict_CheckExact(a.ptr());   // transformers' outputs are dicts whose keys are attributes
    for (auto [key, value] : nb::borrow<nb::dict>(a)) {
      nb::object fp64 = nb::none();
      if (PyDict_Check(f.ptr()) && PyDict_Contains(f.ptr(), key.ptr()) == 1) fp64 = nb::borrow(PyDict_GetItem(f.ptr(), key.ptr()));
      const bool is_attribute = is_output_class && PyUnicode_Check(key.ptr()) && nb::hasattr(a, key);
      visit(value, nb::borrow(PyDict_GetItem(b.ptr(), key.ptr())), fp64, options, is_attribute ? path + "." + nb::cast<std::string>(key) : path + "[" + repr_of(key) + "]");
    }
  }

  void visit_attribute(const std::string& name, nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    const std::string at = path + "." + name;
    if (!nb::hasattr(b, name.c_str())) return add(Outcome::wrong, "the result has no attribute " + name, at);
    visit(a.attr(name.c_str()), b.attr(name.c_str()), nb::getattr(f, name.c_str(), nb::none()), options, at);
  }

  /// A tensor as it is, any other number as torch.tensor makes one; None if it cannot.
  static nb::object as_tensor(nb::handle h) {
    if (is_tensor(h.ptr())) return nb::borrow(h);
    try {
      return Types::get().torch.attr("tensor")(h);
    } catch (const nb::python_error&) {   // it says no more than that the type does not fit
      return nb::none();
    }
  }
  void visit_numbers(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    const Types& types = Types::get();
    const std::pair<nb::handle, const char*> sides[] = {{a, "the reference"}, {b, "the result"}, {f, "the fp64 reference"}};
    for (const auto& [value, side] : sides)
      if (is_instance(value, types.fake_tensor)) return add(Outcome::refused, std::string(side) + " is a fake tensor, which has no data", path);
    const nb::object x = as_tensor(a), y = as_tensor(b);
    if (x.is_none() || y.is_none()) return mismatch(a, b, path);
    const nb::object z = f.is(a) ? x : as_tensor(f);
    const at::Tensor reference = unwrap_tensor(x.ptr()), result = unwrap_tensor(y.ptr()), fp64 = z.is_none() ? at::Tensor() : unwrap_tensor(z.ptr());
    Verdict v;
    {
      nb::gil_scoped_release release;
      v = same_tensors(reference, result, fp64, options, path);
    }
    found_.add(std::move(v));
  }

  void visit_plain(nb::handle a, nb::handle b, const Options& options, const std::string& path) {
    bool equal = false;
    try {
      equal = python_equal(a, b);
    } catch (const nb::python_error&) {   // a tensor of many elements, say, has no truth value
      if (!options.ignore_non_fp) return mismatch(a, b, path);
    }
    decide(equal, a, b, options, path);
  }
  void visit_numpy_scalar(nb::handle a, nb::handle b, const Options& options, const std::string& path) {
    nb::object value = nb::borrow(a);
    if (options.relax_numpy_equality && !Types::get().is_numpy_scalar(b)) value = a.attr("item")();
    if (!value.type().is(b.type())) return mismatch(value, b, path);
    const nb::object equal = nb::steal(PyObject_RichCompare(value.ptr(), b.ptr(), Py_EQ));   // NaN is not equal to itself
    if (!equal.is_valid()) throw nb::python_error();
    decide(PyObject_IsTrue(equal.ptr()) == 1, a, b, Options(), path);
  }
  void visit_ndarray(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    if (!a.type().is(b.type())) return mismatch(a, b, path);
    visit_numbers_of_arrays(a, b, f, as_torch_passes_on(options), path);
  }
  void visit_numbers_of_arrays(nb::handle a, nb::handle b, nb::handle f, const Options& options, const std::string& path) {
    const nb::object x = array_tensor(a), y = array_tensor(b);
    if (x.is_none() || y.is_none()) return add(Outcome::refused, "arrays of dtype " + repr_of(a.attr("dtype")) + " have no tensor", path);
    visit_numbers(x, y, f.is(a) ? nb::handle(x) : f, options, path);
  }
  static nb::object array_tensor(nb::handle array) {
    const nb::object as_tensor = Types::get().torch.attr("as_tensor");
    try {
      return as_tensor(array);
    } catch (const nb::python_error&) {
    }
    try {
      return as_tensor(array.attr("copy")());   // negative strides
    } catch (const nb::python_error&) {
      return nb::none();
    }
  }

  Gathering found_;
};

Rules rules_of(const std::string& name) {
  if (name == "common") return Rules::common;
  if (name == "torch") return Rules::torch;
  if (name == "cutaway") return Rules::cutaway;
  throw nb::value_error(("there are no rules '" + name + "': common, torch, cutaway").c_str());
}

Options options_of(const nb::dict& words) {
  Options o;
  for (auto [key, value] : words) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "rules") o.rules = rules_of(nb::cast<std::string>(value));
    else if (name == "cos_similarity") o.cos_similarity = nb::cast<bool>(value);
    else if (name == "tol") o.tol = nb::cast<double>(value);
    else if (name == "equal_nan") o.equal_nan = nb::cast<bool>(value);
    else if (name == "exact_dtype") o.exact_dtype = nb::cast<bool>(value);
    else if (name == "relax_numpy_equality") o.relax_numpy_equality = nb::cast<bool>(value);
    else if (name == "ignore_non_fp") o.ignore_non_fp = nb::cast<bool>(value);
    else if (name == "use_larger_multiplier_for_smaller_tensor") o.use_larger_multiplier_for_smaller_tensor = nb::cast<bool>(value);
    else if (name == "force_max_multiplier") o.force_max_multiplier = nb::cast<bool>(value);
    else if (name == "use_iou_for_bool") o.use_iou_for_bool = nb::cast<bool>(value);
    else if (name == "iou_threshold") o.iou_threshold = nb::cast<double>(value);
    else if (name == "exact_shape") o.exact_shape = nb::cast<bool>(value);
    else throw nb::type_error(("same() has no option " + name).c_str());
  }
  return o;
}

Outcome outcome_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Outcome::refused); ++i)
    if (outcome_name(static_cast<Outcome>(i)) == name) return static_cast<Outcome>(i);
  throw nb::value_error(("there is no outcome '" + name + "'").c_str());
}

}  // namespace

void bind_compare(nb::module_& m) {
  nb::class_<TensorStats>(m, "TensorStats", "What one pass over a pair of tensors found.")
      .def_ro("dtype", &TensorStats::dtype).def_ro("sizes", &TensorStats::sizes)
      .def_ro("elements", &TensorStats::elements).def_ro("unequal", &TensorStats::unequal).def_ro("not_close", &TensorStats::not_close)
      .def_ro("max_abs", &TensorStats::max_abs).def_ro("max_rel", &TensorStats::max_rel)
      .def_ro("rmse_result", &TensorStats::rmse_result).def_ro("rmse_reference", &TensorStats::rmse_reference)
      .def_ro("worst_index", &TensorStats::worst_index).def_ro("worst_reference", &TensorStats::worst_reference).def_ro("worst_result", &TensorStats::worst_result)
      .def_ro("nan_reference", &TensorStats::nan_reference).def_ro("nan_result", &TensorStats::nan_result)
      .def_ro("inf_reference", &TensorStats::inf_reference).def_ro("inf_result", &TensorStats::inf_result)
      .def_ro("cosine", &TensorStats::cosine);

  nb::class_<Verdict>(m, "Verdict", nb::dynamic_attr(), "The answer of same(): true where the two count as the same, with the evidence.")
      .def("__init__", [](Verdict* v, const std::string& outcome, std::string path, std::string reason) {
             new (v) Verdict();
             v->outcome = outcome_of(outcome);
             v->path = std::move(path);
             v->reason = std::move(reason);
           }, nb::arg("outcome"), nb::arg("path") = "", nb::arg("reason") = "")
      .def("__copy__", [](const Verdict& v) { return Verdict(v); })
      .def("with_outcome", [](Verdict v, const std::string& outcome, std::string reason) {
             v.outcome = outcome_of(outcome);
             v.reason = std::move(reason);
             return v;
           }, nb::arg("outcome"), nb::arg("reason"), "The same evidence under another outcome, for another reason.")
      .def_prop_ro("aspect", [](const Verdict& v) { return std::string(aspect_name(v.aspect)); }, "What it is about: values, gradients, inputs, dtype, strides, ….")
      .def_prop_ro("outcome", [](const Verdict& v) { return std::string(outcome_name(v.outcome)); })
      .def_ro("path", &Verdict::path).def_ro("reason", &Verdict::reason).def_ro("stats", &Verdict::stats)
      .def_ro("leaves", &Verdict::leaves).def_ro("parts", &Verdict::parts)
      .def("__bool__", [](const Verdict& v) { return is_same(v.outcome); })
      .def("__str__", &Verdict::text)
      .def("__repr__", [](const Verdict& v) { return "<Verdict " + std::string(outcome_name(v.outcome)) + (v.path.empty() ? "" : " at " + v.path) + ">"; })
      .def("to_json", &Verdict::to_json, "The verdict as JSON text; NaN and infinities are strings.")
      .def("_repr_html_", [](const Verdict& v) { return report::verdict_for_notebook(base::Json::parse_or_null(v.to_json())); });

  m.def("same", [](nb::handle ref, nb::handle res, nb::handle fp64_ref, const nb::dict& options, const std::vector<std::string>& names) {
          PythonWalk walk;
          const Options o = options_of(options);
          if (names.empty()) walk.visit(ref, res, fp64_ref, o, "out");
          else walk.visit_named(ref, res, fp64_ref, o, names);
          return walk.finish("out");
        }, nb::arg("ref").none(), nb::arg("res").none(), nb::arg("fp64_ref").none(), nb::arg("options"), nb::arg("names") = std::vector<std::string>());
}

}  // namespace cutaway::bindings
