// A Python object that C++ holds.
#pragma once
#include <nanobind/nanobind.h>

namespace cutaway::casters {

/// May be dropped by a thread without the GIL.
struct Held {
  nanobind::object object;
  explicit Held(nanobind::object o) : object(std::move(o)) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    nanobind::gil_scoped_acquire gil;
    object.reset();
  }
};

}  // namespace cutaway::casters
