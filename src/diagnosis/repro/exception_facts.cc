#include "diagnosis/repro/exception_facts.h"

#include <c10/util/Exception.h>

#include <new>

#include "compiler/backends/command.h"

namespace cutaway::repro {
namespace {
std::function<std::optional<ExceptionFacts>(std::exception_ptr)>& describer() {
  static std::function<std::optional<ExceptionFacts>(std::exception_ptr)> f;
  return f;
}
}  // namespace

void set_exception_describer(std::function<std::optional<ExceptionFacts>(std::exception_ptr)> f) { describer() = std::move(f); }

ExceptionFacts describe_exception(std::exception_ptr p) {
  if (describer())
    if (auto facts = describer()(p)) return *std::move(facts);
  try {
    std::rethrow_exception(p);
  } catch (const c10::OutOfMemoryError& e) {
    return {"OutOfMemoryError", e.what_without_backtrace(), "", "", true, {}};
  } catch (const c10::IndexError& e) {
    return {"IndexError", e.what_without_backtrace(), "", "", false, {}};
  } catch (const c10::ValueError& e) {
    return {"ValueError", e.what_without_backtrace(), "", "", false, {}};
  } catch (const c10::TypeError& e) {
    return {"TypeError", e.what_without_backtrace(), "", "", false, {}};
  } catch (const c10::NotImplementedError& e) {
    return {"NotImplementedError", e.what_without_backtrace(), "", "", false, {}};
  } catch (const c10::Error& e) {
    std::string message = e.what_without_backtrace();
    const bool memory = message.find("DefaultCPUAllocator") != std::string::npos;   // the CPU allocator raises a plain error
    return {"RuntimeError", std::move(message), "", "", memory, {}};
  } catch (const std::bad_alloc&) {
    return {"MemoryError", "an allocation failed", "", "", true, {}};
  } catch (const backends::ProgramDied& e) {
    ExceptionFacts facts{"ProgramDied", e.what(), "", "", false, {}};
    facts.signal = e.signal;
    return facts;
  } catch (const std::exception& e) {
    return {"RuntimeError", e.what(), "", "", false, {}};
  } catch (...) {
    return {"unknown exception", "", "", "", false, {}};
  }
}

}  // namespace cutaway::repro
