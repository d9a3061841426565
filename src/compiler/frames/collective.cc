#include "compiler/frames/collective.h"

#include <Python.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "compiler/frames/dynamic_capture.h"
#include "core/base/digest.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/debug/process.h"
#include "core/ir/edit.h"

namespace cutaway::frames {

using base::Json;
using base::Result;

namespace {

constexpr std::string_view kPrefix = "cutaway/collective/";

/// Where a rank says what it compiles.
std::string last_key(int rank) {
  std::string key(kPrefix);
  key += "last/";   // in steps: gcc 12 takes the sum of literals for an overflow
  key += std::to_string(rank);
  return key;
}

/// What a rank saw of the frame: how its graph ends, and the sizes of the tensors it read.
struct Sight {
  enum class Ending { captured, skipped } ending = Ending::captured;
  int32_t break_at = -1;
  std::string reason;
  std::map<std::string, std::vector<int64_t>> sizes;
};

std::string to_text(const Sight& s) {
  Json sizes = Json::Object{};
  for (const auto& [source, dims] : s.sizes) sizes[source] = Json::Array(dims.begin(), dims.end());
  return Json(Json::Object{{"skipped", s.ending == Sight::Ending::skipped}, {"break", int64_t{s.break_at}}, {"reason", s.reason}, {"sizes", std::move(sizes)}}).text();
}

Result<Sight> from_text(const std::string& text, int rank) {
  const std::string place = "what rank " + std::to_string(rank) + " says";
  CUTAWAY_TRY_ASSIGN(const Json document, Json::parse(text, place));
  CUTAWAY_TRY_ASSIGN(base::JsonFields fields, base::JsonFields::open(base::JsonAt(document, place)));
  Sight s;
  bool skipped = false;
  int64_t at = -1;
  CUTAWAY_TRY(fields.fill("skipped", skipped, &base::JsonAt::boolean));
  CUTAWAY_TRY(fields.when("break", [&](const base::JsonAt& v) -> base::Status { CUTAWAY_TRY_ASSIGN(at, v.integer(-1, INT32_MAX)); return {}; }));
  CUTAWAY_TRY(fields.fill("reason", s.reason, &base::JsonAt::string));
  s.ending = skipped ? Sight::Ending::skipped : Sight::Ending::captured;
  s.break_at = static_cast<int32_t>(at);
  CUTAWAY_TRY(fields.when("sizes", [&](const base::JsonAt& v) -> base::Status {
    const Json::Object* all = v.value().as<Json::Object>();
    if (!all) return v.error("expected an object");
    for (const auto& [source, dims] : *all) {
      CUTAWAY_TRY_ASSIGN(s.sizes[source], base::JsonAt(dims, place, source).integers(64, 0));
    }
    return {};
  }));
  CUTAWAY_TRY(fields.finish());
  return s;
}

struct NotRun final : GraphFunction {
  bool run(PyObject* const*, size_t, std::vector<ObjectRef>&) override {
    PyErr_SetString(PyExc_SystemError, "cutaway: a graph that was captured to compare it with other ranks was run");
    return false;
  }
};

Sight sight_of(const CaptureResult& result) {
  Sight s;
  if (const auto* plan = std::get_if<Plan>(&result)) {
    if (const auto* b = std::get_if<Break>(&plan->ending)) {
      s.break_at = b->frames.front().instruction;
      s.reason = b->reason.what;
    }
    for (const guards::Guard& g : plan->guards)
      if (g.kind == guards::GuardKind::tensor && g.tensor) s.sizes[g.source->identity()] = {g.tensor->sizes.begin(), g.tensor->sizes.end()};
    return s;
  }
  s.ending = Sight::Ending::skipped;
  if (const auto* skip = std::get_if<Skip>(&result)) s.reason = skip->reason.what;
  else if (const auto* error = std::get_if<InternalError>(&result)) s.reason = error->error.what;
  return s;
}

/// Sizes of one tensor that are not the same everywhere and may be symbols everywhere.
std::vector<DynamicSize> differing_sizes(const std::vector<Sight>& all) {
  std::vector<DynamicSize> out;
  for (const auto& [source, dims] : all[0].sizes) {
    for (size_t d = 0; d < dims.size(); ++d) {
      bool differs = false, usable = true;
      for (const Sight& s : all) {
        const auto other = s.sizes.find(source);
        if (other == s.sizes.end() || other->second.size() != dims.size()) { usable = false; break; }
        differs |= other->second[d] != dims[d];
        usable &= other->second[d] >= 2;
      }
      if (differs && usable) out.push_back({source, static_cast<int>(d)});
    }
  }
  return out;
}

std::string frame_key(const bytecode::Code& code, int64_t nth) {
  ObjectRef bytes = ObjectRef::steal(PyCode_GetCode(code.object()));   // of this very code: continuations of one function differ in it
  const std::string_view text(PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
  return code.qualified_name() + ":" + std::to_string(code.object()->co_firstlineno) + ":" + base::digest_text(text).hex() + ":" + std::to_string(nth);
}

bool is_interrupted() {
  PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;   // stays set
  PyGILState_Release(state);
  return raised;
}

}  // namespace

base::Error Collective::missing(const std::string& what, const std::vector<int>& ranks, double seconds) {
  std::vector<std::string> names;
  std::string because;
  for (int r : ranks) {
    names.push_back(std::to_string(r));
    std::string last;
    try {
      const std::string key = last_key(r);
      if (texts_->has(key)) last = texts_->get(key);
    } catch (const std::exception&) {   // the store went with the rank: the message is about the rank
    }
    because += (because.empty() ? "" : "; ") + ("rank " + std::to_string(r) + (last.empty() ? " has compiled nothing so far" : " was last seen at " + last));
  }
  char time[32];
  std::snprintf(time, sizeof time, "%.3g", seconds);
  return {"rank " + base::join(names, ", rank ") + (ranks.size() == 1 ? " does" : " do") + " not answer while rank " + std::to_string(rank_) + " is about to compile " + what + " (waited " + time + " s)", "",
          because + ": it has ended, is stuck, or does not compile this function now", "cutaway.options(compiler_collective=False), or a longer compiler_collective_timeout"};
}

Result<std::vector<std::string>> Collective::exchange(const std::string& key, const std::string& what, const std::string& mine, const std::function<bool()>& is_interrupted) {
  const std::string base_key = std::string(kPrefix) + key + "/";
  const auto began = std::chrono::steady_clock::now();
  const auto waited = [&] { return std::chrono::steady_clock::now() - began; };
  std::vector<std::string> out(static_cast<size_t>(size_));
  std::vector<int> absent;
  try {
    texts_->put(base_key + std::to_string(rank_), mine);
    texts_->put(last_key(rank_), what);
    for (int r = 0; r < size_; ++r) absent.push_back(r);
    auto pause = std::chrono::microseconds(200);
    auto asked = std::chrono::steady_clock::now();
    while (!absent.empty()) {
      std::erase_if(absent, [&](int r) {
        if (!texts_->has(base_key + std::to_string(r))) return false;
        out[static_cast<size_t>(r)] = texts_->get(base_key + std::to_string(r));
        return true;
      });
      if (absent.empty()) break;
      if (waited() > timeout_) return missing(what, absent, std::chrono::duration<double>(waited()).count());
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(20'000));
      if (std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(200)) {
        asked = std::chrono::steady_clock::now();
        if (is_interrupted()) return base::Error{.what = "interrupted while waiting for other ranks"};
      }
    }
    if (!previous_.empty()) texts_->remove(previous_);
    previous_ = base_key + std::to_string(rank_);
  } catch (const std::exception& e) {
    const std::string said = e.what();
    return base::Error{"the store that ranks share cannot be reached any more, while rank " + std::to_string(rank_) + " is about to compile " + what, "",
                       "the rank that keeps it (rank 0) may have ended: " + said.substr(0, said.find('\n')), "cutaway.options(compiler_collective=False)"};
  }
  return out;
}

Result<CaptureResult> capture_together(Collective& ranks, const Session& session, const FrameView& frame, const bytecode::Code& code, CaptureOptions options, const Compile& compile, int64_t nth,
                                       std::vector<DynamicSize>& agreed, std::string& why) {
  const std::string key = frame_key(code, nth), what = code.qualified_name() + " (" + code.file() + ":" + std::to_string(code.object()->co_firstlineno) + ")";
  const auto exchange = [&](const std::string& part, const std::string& mine) {
    PyThreadState* thread = PyEval_SaveThread();
    auto all = ranks.exchange(key + "/" + part, what, mine, &is_interrupted);
    PyEval_RestoreThread(thread);
    return all;
  };
  // Each round unites the places where graphs end; a place that is new to somebody needs another look. Every rank sees the same texts, so
  // all of them leave the loop in the same round.
  options.outermost_only = true;
  std::vector<Sight> all;
  std::set<int32_t> united, own;   // a place that is this rank's too keeps its own reason
  for (int round = 0;; ++round) {
    CaptureResult seen = session.capture(frame, code, options, [](CapturedGraph) -> std::shared_ptr<GraphFunction> { return std::make_shared<NotRun>(); });
    if (PyErr_Occurred()) PyErr_Clear();
    CUTAWAY_TRY_ASSIGN(const std::vector<std::string> texts, exchange("sight " + std::to_string(round), to_text(sight_of(seen))));
    all.clear();
    for (size_t r = 0; r < texts.size(); ++r) {
      CUTAWAY_TRY_ASSIGN(Sight s, from_text(texts[r], static_cast<int>(r)));
      all.push_back(std::move(s));
    }
    for (size_t r = 0; r < all.size(); ++r)
      if (all[r].ending == Sight::Ending::skipped) {
        if (static_cast<int>(r) == ranks.rank()) return seen;
        if (!std::holds_alternative<Plan>(seen)) return seen;   // this rank has a reason of its own
        return CaptureResult{Skip{{.id = "other-rank", .what = "rank " + std::to_string(r) + " cannot capture this function: " + all[r].reason}}};
      }
    bool grew = false;
    if (const int32_t mine = all[static_cast<size_t>(ranks.rank())].break_at; mine >= 0 && !options.break_at.contains(mine)) own.insert(mine);
    for (size_t r = 0; r < all.size(); ++r) {
      if (all[r].break_at < 0) continue;
      grew |= united.insert(all[r].break_at).second;
      if (!own.contains(all[r].break_at)) options.break_at.emplace(all[r].break_at, "rank " + std::to_string(r) + " ends its graph here: " + all[r].reason);
    }
    if (!grew) break;
  }
  // A rank that ends its graph where another never comes would go on with a piece that the other does not have, and wait for it in vain.
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r].break_at != all[0].break_at) {
      const size_t breaks = all[r].break_at >= 0 ? r : 0, other = breaks == r ? 0 : r;
      return CaptureResult{Skip{{.id = "ranks-differ", .what = "rank " + std::to_string(breaks) + " ends its graph where rank " + std::to_string(other) + " does not come: " + all[breaks].reason,
                                 .hint = "let every rank take the same way, or move the difference out of the compiled function"}}};
    }
  if (session.dynamic.value_or(true)) {
    agreed = differing_sizes(all);
    for (const DynamicSize& d : agreed)
      if (std::ranges::none_of(options.dynamic, [&](const DynamicSize& o) { return o.source == d.source && o.dim == d.dim; })) options.dynamic.push_back(d);
  }
  CaptureResult result = capture_sizes(session, frame, code, options, compile, why);
  // Whatever else depends on the rank shows here: a graph that is not the same is told, since collectives inside would not meet.
  const auto* plan = std::get_if<Plan>(&result);
  const std::string mine = plan && plan->captured ? ir::digest(*plan->captured).hex() : "none";
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);   // a backend's exception must not be lost
  auto digests = exchange("graph", mine);
  PyErr_Restore(type, value, trace);
  CUTAWAY_TRY_ASSIGN(const std::vector<std::string> graphs, std::move(digests));
  if (std::set<std::string>(graphs.begin(), graphs.end()).size() > 1) {
    std::string list;
    for (size_t r = 0; r < graphs.size(); ++r) list += (r ? ", " : "") + ("rank " + std::to_string(r) + ": " + graphs[r].substr(0, 8));
    debug::say(debug::process_sink(), "capture", debug::Level::warning, what + " has another graph on each rank (" + list + "): something besides sizes and breaks depends on the rank" + (why.empty() ? "" : "; " + why));
  } else {
    debug::say(debug::process_sink(), "capture", debug::Level::info, what + ": " + std::to_string(ranks.size()) + " ranks compile the same graph " + mine.substr(0, 8));
  }
  return result;
}

}  // namespace cutaway::frames
