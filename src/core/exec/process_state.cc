#include "core/exec/process_state.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <torch/library.h>

#include <iterator>

namespace cutaway::exec {
namespace {

struct Switch { const char* setter; int64_t (*get)(); void (*set)(int64_t); };
at::Context& context() { return at::globalContext(); }

constexpr Switch kSwitches[] = {
    {"_set_sdp_use_flash", [] { return int64_t{context().userEnabledFlashSDP()}; }, [](int64_t v) { context().setSDPUseFlash(v != 0); }},
    {"_set_sdp_use_mem_efficient", [] { return int64_t{context().userEnabledMemEfficientSDP()}; }, [](int64_t v) { context().setSDPUseMemEfficient(v != 0); }},
    {"_set_sdp_use_math", [] { return int64_t{context().userEnabledMathSDP()}; }, [](int64_t v) { context().setSDPUseMath(v != 0); }},
    {"_set_sdp_use_cudnn", [] { return int64_t{context().userEnabledCuDNNSDP()}; }, [](int64_t v) { context().setSDPUseCuDNN(v != 0); }},
    {"_set_sdp_use_overrideable", [] { return int64_t{context().userEnabledOverrideableSDP()}; }, [](int64_t v) { context().setSDPUseOverrideable(v != 0); }},
    {"_set_math_sdp_allow_fp16_bf16_reduction", [] { return int64_t{context().allowFP16BF16ReductionMathSDP()}; }, [](int64_t v) { context().setAllowFP16BF16ReductionMathSDP(v != 0); }},
    {"_set_cudnn_enabled", [] { return int64_t{context().userEnabledCuDNN()}; }, [](int64_t v) { context().setUserEnabledCuDNN(v != 0); }},
    {"_set_cudnn_benchmark", [] { return int64_t{context().benchmarkCuDNN()}; }, [](int64_t v) { context().setBenchmarkCuDNN(v != 0); }},
    {"_set_cudnn_deterministic", [] { return int64_t{context().deterministicCuDNN()}; }, [](int64_t v) { context().setDeterministicCuDNN(v != 0); }},
    {"_set_mkldnn_enabled", [] { return int64_t{context().userEnabledMkldnn()}; }, [](int64_t v) { context().setUserEnabledMkldnn(v != 0); }},
    {"_set_default_dtype", [] { return static_cast<int64_t>(c10::get_default_dtype_as_scalartype()); },
     [](int64_t v) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(v))); }},
    // 0 off, 1 on, 2 on and only warns
    {"_set_deterministic_algorithms", [] { return int64_t{context().deterministicAlgorithms() ? (context().deterministicAlgorithmsWarnOnly() ? 2 : 1) : 0}; },
     [](int64_t v) { context().setDeterministicAlgorithms(v != 0, v == 2); }},
};

}  // namespace

int switch_set_by(std::string_view setter) {
  for (size_t i = 0; i < std::size(kSwitches); ++i)
    if (setter == kSwitches[i].setter) return static_cast<int>(i);
  return -1;
}
const char* setter_of(int number) { return kSwitches[number].setter; }
int64_t switch_now(int number) { return kSwitches[number].get(); }
void set_switch(int number, int64_t value) {
  if (switch_now(number) != value) kSwitches[number].set(value);
}

SwitchState::SwitchState() {
  for (const Switch& s : kSwitches) values_.push_back(s.get());
}
void SwitchState::put_back() const {
  for (int i = 0; i < size(); ++i) set_switch(i, (*this)[i]);
}

namespace {
void set_by_name(std::string_view setter, int64_t value) {
  const int number = switch_set_by(setter);
  TORCH_CHECK(number >= 0, "cutaway::set_switch knows no switch ", setter);
  set_switch(number, value);
}
}  // namespace

}  // namespace cutaway::exec

TORCH_LIBRARY_FRAGMENT(cutaway, m) { m.def("set_switch(str setter, int value) -> ()", &cutaway::exec::set_by_name); }
