// `same` on nested values of libtorch: lists, tuples, dicts, tensors and scalars, for callers without Python.
// Python's own containers and output classes are walked in app/bindings/bind_compare.cc, by the same rules.
#pragma once
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/compare/same.h"

namespace cutaway::compare {

/// Part by part; `fp64` may be empty, and a part that it lacks is compared without one. Another length, kind or key is a verdict.
/// `names`, where given, name the parts ("grad of %w"); else they are "out[0]", "out[1]", ….
Verdict same_values(const std::vector<c10::IValue>& reference, const std::vector<c10::IValue>& result,
                    const std::vector<c10::IValue>& fp64, const Options&, const std::vector<std::string>& names = {});

/// "out[3]" and "out['key']".
std::string path_item(const std::string& path, int64_t index);
std::string path_key(const std::string& path, const std::string& key);
/// The verdict for a value that is no tensor and has no number to be near to: == decides.
Verdict same_by_equality(bool equal, const std::string& reference, const std::string& result, const Options&, std::string path);

}  // namespace cutaway::compare
