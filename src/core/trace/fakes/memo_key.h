// Keys of memos: a call as bytes, from its operator and arguments. What of a tensor counts is the memo's business: below autograd its shape
// alone (shape_inference.cc), above it also whether it requires grad (call_memo.cc). Internal to core/trace.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace cutaway::trace {

/// Writes bytes that are equal exactly when everything written was. `Tensors` says what of a tensor counts: bool(KeyWriter&, const at::Tensor&),
/// false when a call with this tensor cannot be memoized.
template <class Tensors> class KeyWriter {
 public:
  KeyWriter(std::string& out, Tensors tensors) : out_(out), tensors_(std::move(tensors)) {}
  template <class T> void number(T v) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &v, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void tag(char c) { out_.push_back(c); }
  void numbers(at::IntArrayRef v) {
    number(static_cast<uint32_t>(v.size()));
    out_.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(int64_t));
  }
  bool value(const c10::IValue& v) {
    if (v.isTensor()) {
      if (!v.toTensor().defined()) { tag('u'); return true; }
      tag('t');
      return tensors_(*this, v.toTensor());
    }
    if (v.isNone()) { tag('n'); return true; }
    if (v.isInt()) { tag('i'); number(v.toInt()); return true; }
    if (v.isBool()) { tag(v.toBool() ? 'y' : 'f'); return true; }
    if (v.isDouble()) { tag('d'); number(v.toDouble()); return true; }
    if (v.isString()) { tag('s'); number(static_cast<uint32_t>(v.toStringRef().size())); out_.append(v.toStringRef()); return true; }
    if (v.isComplexDouble()) { tag('c'); number(v.toComplexDouble().real()); number(v.toComplexDouble().imag()); return true; }
    if (v.isDevice()) { tag('D'); number(static_cast<int8_t>(v.toDevice().type())); number(static_cast<int8_t>(v.toDevice().index())); return true; }
    if (v.isGenerator()) { tag('g'); return true; }   // a generator decides values, never shapes
    if (v.isList()) {
      tag('[');
      const auto items = v.toListRef();
      number(static_cast<uint32_t>(items.size()));
      return std::all_of(items.begin(), items.end(), [&](const c10::IValue& item) { return value(item); });
    }
    return false;
  }

 private:
  std::string& out_;
  Tensors tensors_;
};

}  // namespace cutaway::trace
