#include "core/exec/process_settings.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Device.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <functional>
#include <vector>

#include "core/base/text.h"
#include "core/exec/process_state.h"
#include "core/tensor/convert.h"

namespace cutaway::exec {
namespace {

struct Setting {
  std::string name, standard;
  std::function<std::string()> get;
  std::function<bool(const std::string&)> set;   // false: not a value
};

bool flushes_denormals() {
#if defined(__SSE__)
  constexpr unsigned kFlushToZero = 0x8000;
  return (_mm_getcsr() & kFlushToZero) != 0;
#else
  return false;
#endif
}

std::string precision_text() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST: return "highest";
    case at::Float32MatmulPrecision::HIGH: return "high";
    case at::Float32MatmulPrecision::MEDIUM: return "medium";
  }
  return "highest";
}

/// What torch starts with, of the switches in the order of process_state.cc's table.
int64_t standard_of(std::string_view setter) {
  static constexpr std::string_view kOff[] = {"_set_math_sdp_allow_fp16_bf16_reduction", "_set_cudnn_benchmark", "_set_cudnn_deterministic", "_set_deterministic_algorithms"};
  for (std::string_view off : kOff)
    if (setter == off) return 0;
  return 1;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting>& all = *[] {
    auto* table = new std::vector<Setting>();
    const SwitchState now;
    for (int i = 0; i < now.size(); ++i) {
      const std::string setter = setter_of(i), name = setter.substr(std::string_view("_set_").size());
      if (name == "default_dtype") {
        table->push_back({name, "f32", [] { return std::string(ir::dtype_name(tensor::from_aten(c10::get_default_dtype_as_scalartype()))); },
                          [](const std::string& text) {
                            const auto dtype = ir::dtype_from_name(text);
                            if (!dtype || !ir::is_floating(*dtype)) return false;
                            c10::set_default_dtype(c10::scalarTypeToTypeMeta(tensor::to_aten(*dtype)));
                            return true;
                          }});
        continue;
      }
      table->push_back({name, std::to_string(standard_of(setter)), [i] { return std::to_string(switch_now(i)); },
                        [i](const std::string& text) {
                          if (text != "0" && text != "1" && text != "2") return false;
                          set_switch(i, text[0] - '0');
                          return true;
                        }});
    }
    table->push_back({"float32_matmul_precision", "highest", precision_text, [](const std::string& text) {
                        if (text != "highest" && text != "high" && text != "medium") return false;
                        if (text != precision_text()) at::globalContext().setFloat32MatmulPrecision(text);
                        return true;
                      }});
    table->push_back({"flush_denormal", "0", [] { return std::string(flushes_denormals() ? "1" : "0"); },
                      [](const std::string& text) {
                        if (text != "0" && text != "1") return false;
                        if ((text == "1") != flushes_denormals()) at::globalContext().setFlushDenormal(text == "1");
                        return true;
                      }});
    return table;
  }();
  return all;
}

/// "cuda:0". Torch keeps the default device in Python, where compiled code of Python backends runs: they set it (docs/formats/bundle.md).
bool is_device(const std::string& text) {
  try {
    return !text.empty() && c10::Device(text).str() == text;
  } catch (const c10::Error&) {
    return false;
  }
}

bool is_count(const std::string& text) { return !text.empty() && text.size() < 5 && text.find_first_not_of("0123456789") == text.npos && text != "0"; }

void set_all(const std::map<std::string, std::string>& wanted) {
  for (const Setting& s : settings()) {
    const auto given = wanted.find(s.name);
    s.set(given == wanted.end() ? s.standard : given->second);
  }
}

}  // namespace

std::map<std::string, std::string> process_settings_now() {
  std::map<std::string, std::string> out;
  for (const Setting& s : settings())
    if (std::string value = s.get(); value != s.standard) out.emplace(s.name, std::move(value));
  return out;
}

base::Status check_process_settings(const std::map<std::string, std::string>& wanted) {
  const ProcessScope keep(process_settings_now());
  for (const auto& [name, value] : wanted) {
    if ((name == "threads" || name == "compilations" || name == "calls") && is_count(value)) continue;
    if (name == "default_device" && is_device(value)) continue;
    const auto known = std::find_if(settings().begin(), settings().end(), [&](const Setting& s) { return s.name == name; });
    if (known == settings().end() || !known->set(value)) return base::Error{.what = "the setting " + base::quote(name) + " of the process cannot be " + base::quote(value)};
  }
  return {};
}

ProcessScope::ProcessScope(const std::map<std::string, std::string>& wanted) : before_(process_settings_now()) { set_all(wanted); }
ProcessScope::~ProcessScope() { set_all(before_); }

}  // namespace cutaway::exec
