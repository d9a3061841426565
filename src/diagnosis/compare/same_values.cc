#include "diagnosis/compare/same_values.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <sstream>

#include "diagnosis/compare/wording.h"

namespace cutaway::compare {

std::string path_item(const std::string& path, int64_t index) { return path + "[" + std::to_string(index) + "]"; }
std::string path_key(const std::string& path, const std::string& key) { return path + "['" + key + "']"; }

Verdict same_by_equality(bool equal, const std::string& reference, const std::string& result, const Options& options, std::string path) {
  Verdict v;
  v.path = std::move(path);
  if (equal) {
    v.reason = "the two are equal";
    return v;
  }
  v.outcome = options.ignore_non_fp ? Outcome::ignored : Outcome::wrong;
  v.reason = "the reference is " + reference + ", the result " + result;
  if (options.ignore_non_fp) v.reason += "; values that are not floating point are ignored";
  return v;
}

namespace {

std::string shown(const c10::IValue& v) {
  if (v.isTensor()) return "a tensor";
  if (v.isList() || v.isTuple() || v.isGenericDict()) return "a " + v.tagKind();
  std::ostringstream s;
  s << v;
  return s.str();
}

class Walk {
 public:
  explicit Walk(const Options& options) : options_(options) {}

  void visit(const c10::IValue& a, const c10::IValue& b, const c10::IValue* f, const std::string& path) {
    if (f && f->isNone()) f = nullptr;
    if (a.isTensor() || a.isDouble() || a.isComplexDouble()) return visit_numbers(a, b, f, path);
    if (a.isList() || a.isTuple()) {
      if (!b.isList() && !b.isTuple()) return mismatch(a, b, path);
      const std::vector<c10::IValue> x = items(a), y = items(b), z = f && (f->isList() || f->isTuple()) ? items(*f) : std::vector<c10::IValue>();
      if (x.size() != y.size()) return wrong("another length: the reference has " + count_text(x.size()) + " parts, the result " + count_text(y.size()), path);
      for (size_t i = 0; i < x.size(); ++i) visit(x[i], y[i], i < z.size() ? &z[i] : nullptr, path_item(path, i));
      return;
    }
    if (a.isGenericDict()) return visit_dict(a, b, f, path);
    bool equal = false;
    try {
      equal = a == b;
    } catch (const c10::Error&) {   // kinds that have no ==
      return refuse("values of kind " + a.tagKind() + " cannot be compared", path);
    }
    found_.add(same_by_equality(equal, shown(a), shown(b), options_, path));
  }

  Verdict finish(std::string root) { return std::move(found_).finish(std::move(root)); }
  void wrong(std::string reason, const std::string& path) { add(Outcome::wrong, std::move(reason), path); }
  void refuse(std::string reason, const std::string& path) { add(Outcome::refused, std::move(reason), path); }

 private:
  void add(Outcome outcome, std::string reason, const std::string& path) {
    Verdict v;
    v.outcome = outcome;
    v.path = path;
    v.reason = std::move(reason);
    found_.add(std::move(v));
  }
  void mismatch(const c10::IValue& a, const c10::IValue& b, const std::string& path) {
    wrong("another type: the reference is a " + a.tagKind() + ", the result a " + b.tagKind(), path);
  }
  static std::vector<c10::IValue> items(const c10::IValue& v) {
    if (v.isTuple()) return v.toTupleRef().elements().vec();
    return v.toListRef().vec();
  }
  static at::Tensor as_tensor(const c10::IValue& v) {
    if (v.isTensor()) return v.toTensor();
    if (v.isDouble()) return at::scalar_tensor(v.toDouble(), at::get_default_dtype_as_scalartype());
    if (v.isComplexDouble()) return at::scalar_tensor(v.toComplexDouble(), c10::toComplexType(at::get_default_dtype_as_scalartype()));
    if (v.isBool()) return at::scalar_tensor(v.toBool(), at::kBool);
    if (v.isInt()) return at::scalar_tensor(v.toInt(), at::kLong);
    return {};
  }
  void visit_numbers(const c10::IValue& a, const c10::IValue& b, const c10::IValue* f, const std::string& path) {
    const at::Tensor x = as_tensor(a), y = as_tensor(b);
    if (!x.defined() && (b.isNone() || (b.isTensor() && !y.defined()))) return found_.add(same_by_equality(true, "", "", options_, path));
    if (!x.defined() || !y.defined()) return mismatch(a, b, path);
    found_.add(same_tensors(x, y, f ? as_tensor(*f) : at::Tensor(), options_, path));
  }
  void visit_dict(const c10::IValue& a, const c10::IValue& b, const c10::IValue* f, const std::string& path) {
    if (!b.isGenericDict()) return mismatch(a, b, path);
    const auto x = a.toGenericDict(), y = b.toGenericDict();
    std::string missing;
    for (const auto& entry : x)
      if (!y.contains(entry.key())) missing += (missing.empty() ? "" : ", ") + shown(entry.key());
    if (!missing.empty() || x.size() != y.size())
      return wrong(missing.empty() ? "the result has keys that the reference has not" : "the result lacks the keys " + missing, path);
    for (const auto& entry : x) {
      const auto& key = entry.key();
      const bool has_fp64 = f && f->isGenericDict() && f->toGenericDict().contains(key);
      const c10::IValue fp64 = has_fp64 ? f->toGenericDict().at(key) : c10::IValue();
      visit(entry.value(), y.at(key), has_fp64 ? &fp64 : nullptr, key.isString() ? path_key(path, key.toStringRef()) : path + "[" + shown(key) + "]");
    }
  }

  const Options& options_;
  Gathering found_;
};

}  // namespace

Verdict same_values(const std::vector<c10::IValue>& reference, const std::vector<c10::IValue>& result, const std::vector<c10::IValue>& fp64,
                    const Options& options, const std::vector<std::string>& names) {
  Walk walk(options);
  if (reference.size() != result.size())
    walk.wrong("another length: the reference has " + count_text(reference.size()) + " parts, the result " + count_text(result.size()), "out");
  else
    for (size_t i = 0; i < reference.size(); ++i)
      walk.visit(reference[i], result[i], i < fp64.size() ? &fp64[i] : nullptr, i < names.size() ? names[i] : path_item("out", i));
  return walk.finish("out");
}

}  // namespace cutaway::compare
