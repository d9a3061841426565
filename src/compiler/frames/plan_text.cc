// A plan as text: what a cache hit does instead of the function's bytecode.
#include "compiler/frames/run_plan.h"

namespace cutaway::frames {
namespace {

const char* kind_name(Recipe::Kind k) {
  static constexpr const char* kNames[] = {"read", "constant", "output", "tuple", "list", "set", "frozenset", "dict", "slice", "call", "instance", "function", "cell", "method", "size"};
  return kNames[static_cast<size_t>(k)];
}
const char* kind_name(Effect::Kind k) {
  static constexpr const char* kNames[] = {"replace list", "replace dict", "replace set", "set item", "delete item", "set attribute", "delete attribute", "store global",
                                           "delete global", "store cell", "call"};
  return kNames[static_cast<size_t>(k)];
}
std::string ref(RecipeId id) { return id == kNull ? "NULL" : id == kNothing ? "-" : "#" + std::to_string(id); }
std::string refs(const std::vector<RecipeId>& ids) {
  std::string out;
  for (RecipeId id : ids) out += (out.empty() ? "" : ", ") + ref(id);
  return out;
}
std::string object_text(PyObject* o) {
  if (!o) return "";
  if (PyUnicode_CheckExact(o)) return PyUnicode_AsUTF8(o);
  if (PyType_Check(o)) return reinterpret_cast<PyTypeObject*>(o)->tp_name;
  if (o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o)) {
    ObjectRef text = ObjectRef::steal(PyObject_Repr(o));
    if (text) return PyUnicode_AsUTF8(text.get());
    PyErr_Clear();
  }
  return std::string("<") + Py_TYPE(o)->tp_name + ">";
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string out;
  if (plan.graph) {
    out += "  graph(";
    for (size_t i = 0; i < plan.inputs.size(); ++i) out += (i ? ", " : "") + plan.inputs[i]->text();
    out += ") gives " + std::to_string(plan.output_count) + " outputs\n";
  }
  for (size_t i = 0; i < plan.recipes.size(); ++i) {
    const Recipe& r = plan.recipes[i];
    out += "  #" + std::to_string(i) + " = " + kind_name(r.kind);
    if (r.kind == Recipe::Kind::source) out += " " + r.source->text();
    else if (r.kind == Recipe::Kind::output) out += " " + std::to_string(r.index);
    else if (r.size) out += " " + r.size->text;
    else if (r.object) out += " " + object_text(r.object.get());
    if (!r.parts.empty()) out += " (" + refs(r.parts) + ")";
    out += "\n";
  }
  for (const Effect& e : plan.effects) {
    out += std::string("  ") + kind_name(e.kind) + " " + ref(e.target);
    if (e.name) out += " " + object_text(e.name.get());
    if (e.key != kNothing) out += " [" + ref(e.key) + "]";
    if (e.value != kNothing) out += " = " + ref(e.value);
    if (!e.parts.empty()) out += " (" + refs(e.parts) + ")";
    out += "\n";
  }
  if (const auto* r = std::get_if<ReturnValue>(&plan.ending)) out += "  return " + ref(r->value) + "\n";
  else if (const auto* x = std::get_if<RaiseValue>(&plan.ending)) out += "  raise " + ref(x->exception) + "\n";
  else if (const auto* b = std::get_if<Break>(&plan.ending)) {
    out += "  break: " + b->reason.what + "\n";
    for (size_t i = 0; i < b->frames.size(); ++i) {
      const OpenFrame& f = b->frames[i];
      out += (i ? "    inside, " : "    ") + std::string(i + 1 < b->frames.size() ? "in the call at" : "at") + " instruction " + std::to_string(f.instruction) + ", locals (" + refs(f.locals) + "), stack (" + refs(f.stack) + ")\n";
    }
  }
  else out += "  run the frame eagerly: " + std::get<RunEagerly>(plan.ending).reason.what + "\n";
  return out;
}

}  // namespace cutaway::frames
