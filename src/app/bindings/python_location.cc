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

ir::Location PythonLocation::here() {
  const nb::gil_scoped_acquire gil;
  ir::Location where;
  nb::object frame = nb::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame.is_valid()) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const Code& code = describe(nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f))));
    if (!code.is_skipped) {
      where.file = code.file;
      where.function = code.function;
      where.line = PyFrame_GetLineNumber(f);
      break;
    }
    frame = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  if (!modules_.empty()) where.module = modules_.back();
  return where;
}

}  // namespace cutaway::bindings
