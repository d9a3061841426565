#include "compiler/native/machine_limits.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "compiler/codegen/prelude.h"
#include "compiler/native/kernel_call.h"
#include "compiler/native/toolchain.h"
#include "core/base/digest.h"
#include "core/base/files.h"
#include "core/base/json.h"

namespace cutaway::native {
namespace {

constexpr int64_t kCopied = int64_t{16} << 20;   // floats of the array that is copied: more than caches hold
constexpr int64_t kUnit = 16384;                 // floats, and rounds of multiply-adds, of one unit of work
constexpr int kChains = 12;                      // sums that do not wait for each other

constexpr const char* kSource = R"(
extern "C" void copy_floats(void* const* buffer, long begin, long end) {
  const float* from = (const float*)buffer[0];
  float* to = (float*)buffer[1];
  for (long i = begin * 16384; i < end * 16384; i += W) write(to + i, read<F>(from + i, Full{}), Full{});
}
extern "C" void multiply_add(void* const* buffer, long begin, long end) {
  const F x = splat_f(*(const float*)buffer[0]), y = splat_f(((const float*)buffer[0])[1]);
  for (long unit = begin; unit < end; ++unit) {
    F a[12] = {};
    for (int i = 0; i < 16384; ++i)
      for (int j = 0; j < 12; ++j) a[j] = vfma(a[j], x, y);
    F sum = a[0];
    for (int j = 1; j < 12; ++j) sum += a[j];
    write((float*)buffer[1] + unit * W, sum, Full{});
  }
}
)";

double best_of(int times, const auto& f) {
  double best = 1e30;
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// The processor's name; two machines may share a home folder.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line;
  return "a processor";
}

base::Result<MachineLimits> measure(int lanes) {
  CUTAWAY_TRY_ASSIGN(const std::shared_ptr<Library> library, Library::load(codegen::prelude(lanes) + kSource, lanes, nullptr));
  using Function = void (*)(void* const*, int64_t, int64_t);
  const auto copy = reinterpret_cast<Function>(library->find("copy_floats")), compute = reinterpret_cast<Function>(library->find("multiply_add"));
  if (!copy || !compute) return base::Error{.what = "the machine's limits cannot be measured"};
  MachineLimits found;
  found.threads = at::get_num_threads();
  const at::Tensor from = at::ones({kCopied}, at::kFloat), to = at::zeros({kCopied}, at::kFloat);
  void* const buffers[] = {from.mutable_data_ptr(), to.mutable_data_ptr()};
  const KernelCall::Body copying = loop_body(library, copy, {kCopied / kUnit, kUnit});
  copying(buffers);
  found.bytes_per_s = 2.0 * sizeof(float) * static_cast<double>(kCopied) / best_of(5, [&] { copying(buffers); });
  const int64_t units = 64L * found.threads;
  const KernelCall::Body computing = loop_body(library, compute, {units, kUnit});
  computing(buffers);
  found.operations_per_s = 2.0 * kChains * lanes * static_cast<double>(kUnit * units) / best_of(3, [&] { computing(buffers); });
  return found;
}

base::Result<MachineLimits> find_limits() {
  const int lanes = processor_lanes();
  const std::string key = base::Hasher().add(processor_name()).add(std::to_string(at::get_num_threads())).add(std::to_string(lanes)).finish().hex().substr(0, 16);
  const std::filesystem::path file = cache_directory() / ("limits-" + key + ".json");
  if (const auto text = base::read_file(file, 1 << 12); text.ok())
    if (const auto kept = base::Json::parse(*text, file.string()); kept.ok())
      if (const auto* o = kept->as<base::Json::Object>()) {
        const auto bytes = o->find("bytes_per_s"), operations = o->find("operations_per_s");
        const double* b = bytes == o->end() ? nullptr : bytes->second.as<double>();
        const double* n = operations == o->end() ? nullptr : operations->second.as<double>();
        if (b && n && *b > 0 && *n > 0) return MachineLimits{*b, *n, at::get_num_threads()};
      }
  CUTAWAY_TRY_ASSIGN(const MachineLimits found, measure(lanes));
  if (base::make_directories(file.parent_path(), base::Sync::fast).ok()) {
    const base::Json kept = base::Json::Object{{"bytes_per_s", found.bytes_per_s}, {"operations_per_s", found.operations_per_s}};
    (void)base::write_file_atomic(file, kept.text() + "\n", base::Sync::fast).ok();   // measured again next time, then
  }
  return found;
}

}  // namespace

const base::Result<MachineLimits>& machine_limits() {
  static const auto* found = new base::Result<MachineLimits>(find_limits());   // never gone: it is asked for when the process ends, too
  return *found;
}

}  // namespace cutaway::native
