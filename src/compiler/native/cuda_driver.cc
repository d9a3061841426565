#include "compiler/native/cuda_driver.h"

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "compiler/native/toolchain.h"
#include "core/base/digest.h"
#include "core/base/text.h"

namespace cutaway::native {
namespace {

namespace fs = std::filesystem;
using base::Error;
using base::Result;
using base::Status;

constexpr int kMajor = 75, kMinor = 76;   ///< attributes of a device: its compute capability
constexpr size_t kTextsTogether = 6;      ///< of one NVRTC program; programs are compiled side by side

template <class F> bool find(void* library, const char* name, F& into) {
  into = reinterpret_cast<F>(::dlsym(library, name));
  return into != nullptr;
}

Result<CudaDriver> open_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{.what = "there is no CUDA driver", .because = ::dlerror(), .hint = "CUDA tensors need NVIDIA's driver, which brings libcuda.so.1"};
  CudaDriver d;
  const bool all = find(library, "cuInit", d.init) && find(library, "cuDeviceGetCount", d.device_count) && find(library, "cuDeviceGet", d.device_get) && find(library, "cuDeviceGetName", d.device_name) &&
                   find(library, "cuDeviceGetAttribute", d.device_attribute) && find(library, "cuCtxGetCurrent", d.context_current) && find(library, "cuCtxSetCurrent", d.context_set) &&
                   find(library, "cuDevicePrimaryCtxRetain", d.primary_retain) && find(library, "cuModuleLoadData", d.module_load) && find(library, "cuModuleGetFunction", d.module_function) &&
                   find(library, "cuLaunchKernel", d.launch) && find(library, "cuMemcpyDtoDAsync_v2", d.copy) && find(library, "cuStreamIsCapturing", d.is_capturing) && find(library, "cuGetErrorString", d.error_string);
  if (!all) return Error{.what = "the CUDA driver is too old", .because = "libcuda.so.1 lacks a function that is needed"};
  if (const int code = d.init(0)) return Error{.what = "the CUDA driver does not start", .because = d.error(code)};
  return d;
}

/// What libnvrtc.so has, as far as it is needed.
struct Nvrtc {
  int (*version)(int*, int*) = nullptr;
  int (*create)(void** program, const char* source, const char* name, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void* program, int count, const char* const* options) = nullptr;
  int (*destroy)(void** program) = nullptr;
  int (*size)(void* program, size_t*) = nullptr;
  int (*get)(void* program, char*) = nullptr;
  int (*log_size)(void* program, size_t*) = nullptr;
  int (*log)(void* program, char*) = nullptr;
  const char* (*error)(int) = nullptr;
  std::string version_text;
};

/// Where a libnvrtc may be: as the loader finds it, beside torch's libraries, in the packages that torch's wheels bring, in the toolkit's folder.
std::vector<std::string> nvrtc_places() {
  if (const char* given = std::getenv("CUTAWAY_NVRTC"); given && *given) return {given};
  std::vector<std::string> folders, places = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&c10::isValidDeviceType), &info) && info.dli_fname) {
    const fs::path lib = fs::path(info.dli_fname).parent_path(), packages = lib.parent_path().parent_path() / "nvidia";
    folders.push_back(lib.string());
    std::error_code code;
    for (fs::directory_iterator it(packages, code), end; !code && it != end; it.increment(code)) folders.push_back((it->path() / "lib").string());
  }
  for (const char* root : std::initializer_list<const char*>{std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH"), "/usr/local/cuda"})
    if (root) folders.push_back(std::string(root) + "/lib64");
  for (const std::string& folder : folders) {
    std::vector<std::string> found;
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
      if (const std::string name = it->path().filename().string(); name.starts_with("libnvrtc.so")) found.push_back(it->path().string());
    std::ranges::sort(found);
    places.insert(places.end(), found.begin(), found.end());
  }
  return places;
}

Result<Nvrtc> open_nvrtc() {
  std::string why;
  for (const std::string& place : nvrtc_places()) {
    void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      if (why.empty()) why = ::dlerror();
      continue;
    }
    Nvrtc n;
    const bool all = find(library, "nvrtcVersion", n.version) && find(library, "nvrtcCreateProgram", n.create) && find(library, "nvrtcCompileProgram", n.compile) && find(library, "nvrtcDestroyProgram", n.destroy) &&
                     find(library, "nvrtcGetCUBINSize", n.size) && find(library, "nvrtcGetCUBIN", n.get) && find(library, "nvrtcGetProgramLogSize", n.log_size) && find(library, "nvrtcGetProgramLog", n.log) && find(library, "nvrtcGetErrorString", n.error);
    int major = 0, minor = 0;
    if (!all || n.version(&major, &minor) != 0) {
      why = place + " lacks a function that is needed";
      continue;
    }
    n.version_text = std::to_string(major) + "." + std::to_string(minor);
    return n;
  }
  return Error{.what = "there is no compiler for CUDA text", .because = why, .hint = "torch's CUDA packages bring it (nvidia-cuda-nvrtc); CUTAWAY_NVRTC names a libnvrtc.so elsewhere"};
}

const Result<Nvrtc>& nvrtc() {
  static const Result<Nvrtc> found = open_nvrtc();
  return found;
}

Result<std::string> compile_now(const std::string& source, const std::vector<std::string>& options) {
  const Nvrtc& n = *nvrtc();
  void* program = nullptr;
  if (const int code = n.create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr)) return Error{.what = "NVRTC takes no program", .because = n.error(code)};
  std::vector<const char*> words;
  for (const std::string& o : options) words.push_back(o.c_str());
  const int code = n.compile(program, static_cast<int>(words.size()), words.data());
  std::string made;
  size_t size = 0;
  if (code == 0 && n.size(program, &size) == 0 && size > 0) {
    made.resize(size);
    if (n.get(program, made.data()) != 0) made.clear();
  }
  std::string log;
  if (made.empty() && n.log_size(program, &size) == 0 && size > 1) {
    log.resize(size);
    n.log(program, log.data());
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  }
  n.destroy(&program);
  if (!made.empty()) return made;
  return Error{.what = "NVRTC failed: " + std::string(n.error(code)), .because = log.substr(0, 2000), .hint = "the graph runs as torch's own operators; report this with the text (CUTAWAY_DEBUG=4 keeps it)"};
}

/// Makes a device's context the current one of this thread, where it has none: torch's threads have theirs.
Status enter_device(const CudaDriver& d, int device, bool always) {
  void* context = nullptr;
  if (!always && d.context_current(&context) == 0 && context) return {};
  int handle = 0;
  int code = d.device_get(&handle, device);
  if (code == 0) code = d.primary_retain(&context, handle);
  if (code == 0) code = d.context_set(context);
  if (code != 0) return Error{.what = "CUDA device " + std::to_string(device) + " cannot be used", .because = d.error(code)};
  return {};
}

/// Every loaded text, by its digest and device. They stay.
struct Modules {
  std::mutex mutex;
  std::map<std::pair<std::string, int>, void*> loaded;
};
Modules& modules() {
  static Modules* all = new Modules;   // never destroyed: the driver may be gone at exit
  return *all;
}

}  // namespace

std::string CudaDriver::error(int code) const {
  const char* text = nullptr;
  if (error_string && error_string(code, &text) == 0 && text) return text;
  return "CUDA error " + std::to_string(code);
}

const Result<CudaDriver>& cuda_driver() {
  static const Result<CudaDriver> found = open_driver();
  return found;
}

std::vector<std::string> cuda_devices() {
  std::vector<std::string> names;
  const Result<CudaDriver>& d = cuda_driver();
  int count = 0;
  if (!d.ok() || d->device_count(&count) != 0) return names;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char name[256] = {};
    const auto architecture = cuda_architecture(i);
    if (d->device_get(&device, i) != 0 || d->device_name(name, sizeof name - 1, device) != 0 || !architecture.ok()) continue;
    names.push_back("cuda:" + std::to_string(i) + ": " + name + " (" + std::to_string(*architecture / 10) + "." + std::to_string(*architecture % 10) + ")");
  }
  return names;
}

Result<int> cuda_architecture(int device) {
  const Result<CudaDriver>& d = cuda_driver();
  if (!d.ok()) return d.error();
  int handle = 0, major = 0, minor = 0;
  int code = d->device_get(&handle, device);
  if (code == 0) code = d->device_attribute(&major, kMajor, handle);
  if (code == 0) code = d->device_attribute(&minor, kMinor, handle);
  if (code != 0) return Error{.what = "CUDA device " + std::to_string(device) + " cannot be asked", .because = d->error(code)};
  return major * 10 + minor;
}

const Result<std::string>& nvrtc_version() {
  static const Result<std::string> version = [] () -> Result<std::string> {
    if (!nvrtc().ok()) return nvrtc().error();
    return nvrtc()->version_text;
  }();
  return version;
}

Result<std::string> compile_cuda(const std::string& source, int architecture, debug::Sink* sink, bool* is_new) {
  if (!nvrtc().ok()) return nvrtc().error();
  // No contraction, as on the processor: a product is rounded before it is added.
  const std::vector<std::string> options = {"--gpu-architecture=sm_" + std::to_string(architecture), "--std=c++17", "--fmad=false", "-w"};
  base::Hasher hasher;
  hasher.add(source).add("nvrtc").add(nvrtc()->version_text);
  for (const std::string& o : options) hasher.add(o).add("\n");
  const std::string key = hasher.finish().hex();
  if (auto kept = read_cached(key + ".cubin")) {
    debug::count(sink, "native", "cache_hits", 1);
    return std::move(*kept);
  }
  if (is_new) *is_new = true;
  debug::Phase phase(sink, "native", "compile");
  phase.note("bytes", static_cast<int64_t>(source.size()));
  auto made = compile_now(source, options);
  if (!made.ok()) {
    phase.fail(made.error().what);
    return made;
  }
  if (!keep_cached(key, ".cu", source, ".cubin", *made)) debug::say(sink, "native", debug::Level::warning, "the cache of compiled code cannot be written: " + cache_directory().string());
  return made;
}

Result<std::shared_ptr<CudaLibrary>> CudaLibrary::load(const codegen::Program& program, int device, debug::Sink* sink) {
  const Result<CudaDriver>& d = cuda_driver();
  if (!d.ok()) return d.error();
  CUTAWAY_TRY_ASSIGN(const int architecture, cuda_architecture(device));
  // Texts in groups, a thread for each: NVRTC takes most of its time for a text, little for a program.
  std::vector<std::vector<size_t>> groups;
  std::vector<size_t> texts;
  for (size_t i = 0; i < program.texts.size(); ++i)
    if (program.texts[i].cuda) texts.push_back(i);
  const size_t workers = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  const size_t together = std::clamp<size_t>((texts.size() + workers - 1) / workers, 1, kTextsTogether);
  for (size_t i = 0; i < texts.size(); i += together) groups.emplace_back(texts.begin() + static_cast<long>(i), texts.begin() + static_cast<long>(std::min(i + together, texts.size())));
  std::vector<Result<std::string>> made(groups.size(), Result<std::string>(std::string()));
  std::vector<char> anew(groups.size(), 0);
  std::vector<std::string> sources;
  for (const auto& g : groups) sources.push_back(program.cuda_source(g));
  const auto work = [&](size_t first, debug::Sink* to) {
    for (size_t i = first; i < groups.size(); i += workers) {
      bool is_new = false;
      made[i] = compile_cuda(sources[i], architecture, to, &is_new);
      anew[i] = is_new ? 1 : 0;
    }
  };
  {
    std::vector<std::jthread> others;   // joined in any case
    for (size_t w = 1; w < std::min(workers, groups.size()); ++w) others.emplace_back(work, w, nullptr);
    work(0, sink);
  }
  auto library = std::make_shared<CudaLibrary>();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!made[i].ok()) return made[i].error();
    if (anew[i]) library->compiled_anew_ += static_cast<int64_t>(groups[i].size());
    void* module = nullptr;
    {
      std::lock_guard lock(modules().mutex);
      void*& known = modules().loaded[{base::digest_text(*made[i]).hex(), device}];
      if (!known) {
        void* before = nullptr;
        d->context_current(&before);
        CUTAWAY_TRY(enter_device(*d, device, true));
        const int code = d->module_load(&known, made[i]->data());
        d->context_set(before);
        if (code != 0) {
          known = nullptr;
          return Error{.what = "the driver does not take the compiled code", .because = d->error(code)};
        }
      }
      module = known;
    }
    for (size_t t : groups[i]) {
      const codegen::Text& text = program.texts[t];
      std::vector<std::string> names = {text.function};
      if (text.cuda->scratch_bytes > 0) names.push_back(text.function + "_end");
      for (const std::string& name : names) {
        void* function = nullptr;
        if (const int code = d->module_function(&function, module, name.c_str())) return Error{.what = "the compiled code has no function " + name, .because = d->error(code)};
        library->functions_[name] = function;
      }
    }
  }
  return library;
}

void* CudaLibrary::find(const std::string& function) const {
  const auto it = functions_.find(function);
  return it == functions_.end() ? nullptr : it->second;
}

}  // namespace cutaway::native
