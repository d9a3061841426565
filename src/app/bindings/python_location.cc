#include "app/bindings/python_location.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace cutaway::bindings {

const PythonLocation::Code& PythonLocation::describe(nb::object code) {
  auto [it, fresh] = codes_.try_emplace(code.ptr());
  if (fresh) {
    Code& c = it->second;
    c.file = nb::cast<std::string>(code.attr("co_filename"));
    c.function = nb::cast<std::string>(code.attr("co_qualname"));
    c.is_skipped = c.file.starts_with('<');
    for (const auto& folder : skipped_) c.is_skipped |= c.file.starts_with(folder);
    c.keep = std::move(code);
  }
  return it->second;
}

/// The innermost frame of the user's; invalid when there is none.
nb::object PythonLocation::user_frame(const Code** code) {
  nb::object frame = nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame.is_valid()) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    *code = &describe(nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f))));
    if (!(*code)->is_skipped) break;
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return frame;
}

ir::Location PythonLocation::here() {
  const nb::gil_scoped_acquire gil;
  ir::Location where;
  const Code* code = nullptr;
  if (nb::object frame = user_frame(&code); frame.is_valid()) {
    where.file = code->file;
    where.function = code->function;
    where.line = PyFrame_GetLineNumber(reinterpret_cast<PyFrameObject*>(frame.ptr()));
  }
  if (!modules_.empty()) where.module = modules_.back();
  return where;
}

uint64_t PythonLocation::place() {
  const nb::gil_scoped_acquire gil;
  const Code* code = nullptr;
  nb::object frame = user_frame(&code);
  const int at = frame.is_valid() ? PyFrame_GetLasti(reinterpret_cast<PyFrameObject*>(frame.ptr())) : -1;
  key_.assign(reinterpret_cast<const char*>(&code), sizeof code);   // code objects are kept, so that no address comes twice
  key_.append(reinterpret_cast<const char*>(&at), sizeof at);
  if (!modules_.empty()) key_ += modules_.back();
  return places_.try_emplace(key_, places_.size() + 1).first->second;
}

}  // namespace cutaway::bindings
