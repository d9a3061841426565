// The record of a tensor as Python values; python/cutaway/_store.py makes a TensorMetadata of it.
#pragma once
#include <c10/core/Device.h>
#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "core/bundle/tensor_record.h"

namespace cutaway::bindings {
nanobind::dict record_dict(const bundle::TensorRecord&);
/// Throws torch's error for a device that it does not know.
std::optional<c10::Device> device_from(const std::optional<std::string>& text);
}  // namespace cutaway::bindings
