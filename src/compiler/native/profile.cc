#include "compiler/native/profile.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

#include "compiler/codegen/cost.h"
#include "compiler/native/cuda_call.h"
#include "compiler/native/machine_limits.h"
#include "compiler/native/watch.h"
#include "core/debug/events.h"

namespace cutaway::native {
namespace {

using base::Json;
using Clock = std::chrono::steady_clock;
constexpr size_t kMostMoments = 200'000;   // of the timeline: what comes later is in the table alone

struct Moment { uint64_t start_us; int64_t ns; uint32_t thread; const GraphTimes* graph; size_t step; };
constexpr size_t kWholeRun = SIZE_MAX;

struct Profile {
  std::mutex mutex;
  std::atomic<bool> is_on = false;
  std::vector<std::shared_ptr<GraphTimes>> graphs;
  std::vector<Moment> moments;
};
Profile& profile() {
  static Profile* made = new Profile;
  return *made;
}

uint32_t thread_number() {
  static std::atomic<uint32_t> next = 1;
  thread_local const uint32_t number = next++;
  return number;
}

void note_moment(const GraphTimes* graph, size_t step, uint64_t start_us, int64_t ns) {
  Profile& p = profile();
  if (!p.is_on) return;
  const std::lock_guard lock(p.mutex);
  if (p.moments.size() < kMostMoments) p.moments.push_back({start_us, ns, thread_number(), graph, step});
}

/// What a torch operator moves, from the types of what goes in and out; operations of the products among them.
codegen::Cost cost_of(const ir::Graph& g, const ir::Node& n) {
  codegen::Cost c;
  const auto bytes = [&](ir::ValueId id) -> int64_t {
    if (!g.value(id).type.is_tensor()) return 0;
    const auto numel = g.value(id).type.tensor.numel();
    return numel ? *numel * ir::dtype_bytes(g.value(id).type.tensor.dtype) : 0;
  };
  std::vector<ir::ValueId> used;
  ir::for_each_use(n, [&](ir::ValueId id) { used.push_back(id); });
  for (ir::ValueId id : used) c.bytes += bytes(id);
  for (ir::ValueId id : n.results) c.bytes += bytes(id);
  const bool is_product = n.target == "aten.mm" || n.target == "aten.bmm" || n.target == "aten.addmm";
  if (is_product && used.size() >= 2 && !n.results.empty() && g.value(n.results[0]).type.is_tensor()) {
    const auto result = g.value(n.results[0]).type.tensor.numel();
    const auto& sizes = g.value(used[used.size() - 2]).type.tensor.sizes;
    if (result && !sizes.empty() && !sizes.back().is_symbolic()) c.operations = 2 * *result * sizes.back().value();
  }
  return c;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += (out.empty() ? "" : "; ") + l;
  return out;
}

std::string time_text(double seconds) {
  char b[32];
  std::snprintf(b, sizeof b, seconds >= 1 ? "%.2f s" : seconds >= 1e-3 ? "%.2f ms" : "%.1f us", seconds >= 1 ? seconds : seconds >= 1e-3 ? seconds * 1e3 : seconds * 1e6);
  return b;
}

}  // namespace

class TimingWatcher final : public Watcher {
 public:
  explicit TimingWatcher(GraphTimes& times) : times_(times) {}
  void before(const ir::Node&, const std::vector<c10::IValue>&) override {
    start_us_ = debug::now_us();
    start_ = Clock::now();
  }
  void after(const ir::Node& n, const std::vector<c10::IValue>& results) override {
    for (const c10::IValue& r : results)   // a card works on while the host goes on: what it was given ends before the clock is read
      if (r.isTensor() && r.toTensor().defined() && r.toTensor().is_cuda()) {
        finish_cuda_work(r.toTensor().device().index());
        break;
      }
    const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
    if (!n.results.empty()) times_.add(n.results[0], start_us_, ns);
  }

 private:
  GraphTimes& times_;
  uint64_t start_us_ = 0;
  Clock::time_point start_;
};

GraphTimes::GraphTimes(const codegen::Program& program) : name_(program.graph.name.empty() ? "graph" : program.graph.name) {
  std::unordered_map<std::string, const codegen::Generated*> loops;
  std::unordered_map<std::string, const codegen::Product*> products;
  for (const codegen::Generated& k : program.kernels) loops["native." + k.kernel.name] = &k;
  for (const codegen::Product& p : program.products) products["native." + p.name] = &p;
  for (const ir::Node& n : program.graph.body.nodes) {
    if (n.results.empty()) continue;
    StepTime s;
    s.name = n.target;
    s.place = place_of(program.graph, n);
    codegen::Cost cost;
    const auto k = loops.find(n.target);
    if (k != loops.end() && !products.contains(n.target)) {
      s.kind = "kernel";
      s.computes = joined(k->second->kernel.comment);
      s.text = program.texts[k->second->text].source;
      cost = codegen::cost_of(k->second->kernel);
    } else if (const auto p = products.find(n.target); p != products.end()) {
      s.kind = "product";
      s.computes = p->second->text();
      cost = codegen::cost_of(*p->second);
      if (p->second->epilogue) {
        s.text = program.texts[*p->second->epilogue].source;
        s.computes += ": " + joined(k->second->kernel.comment);
        cost.operations += codegen::cost_of(k->second->kernel).operations;
      }
    } else if (const auto c = std::ranges::find_if(program.conv_gradients, [&](const codegen::ConvGradient& g) { return "native." + g.name == n.target; }); c != program.conv_gradients.end()) {
      s.kind = "product";
      s.computes = c->text();
      cost = codegen::cost_of(*c);
    } else if (const auto a = std::ranges::find_if(program.attentions, [&](const codegen::AttentionCall& c) { return "native." + c.name == n.target; }); a != program.attentions.end()) {
      s.kind = "product";
      s.computes = a->text();
      cost = codegen::cost_of(*a);
    } else {
      s.kind = "torch";
      s.computes = n.target;
      cost = cost_of(program.graph, n);
    }
    s.bytes = cost.bytes;
    s.operations = cost.operations;
    step_of_[n.results[0]] = steps_.size();
    steps_.push_back(std::move(s));
  }
}

void GraphTimes::add(ir::ValueId result, uint64_t start_us, int64_t ns) {
  const auto it = step_of_.find(result);
  if (it == step_of_.end()) return;
  note_moment(this, it->second, start_us, ns);
  const std::lock_guard lock(mutex_);
  StepTime& s = steps_[it->second];
  s.least_ns = s.calls++ ? std::min(s.least_ns, ns) : ns;
  s.total_ns += ns;
}

std::vector<c10::IValue> GraphTimes::run(const exec::Program& program, std::vector<c10::IValue>& inputs) {
  TimingWatcher watcher(*this);
  const uint64_t start_us = debug::now_us();
  const Clock::time_point start = Clock::now();
  std::vector<c10::IValue> outputs = run_watched(program, inputs, watcher);
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  note_moment(this, kWholeRun, start_us, ns);
  const std::lock_guard lock(mutex_);
  ++calls_;
  total_ns_ += ns;
  return outputs;
}

Json GraphTimes::to_json() const {
  const auto& limits = machine_limits();
  const std::lock_guard lock(mutex_);
  Json::Array steps;
  for (const StepTime& s : steps_) {
    Json::Object o{{"name", s.name}, {"kind", s.kind}, {"computes", s.computes}, {"place", s.place}, {"calls", s.calls}, {"seconds", static_cast<double>(s.total_ns) * 1e-9}, {"least_seconds", static_cast<double>(s.least_ns) * 1e-9},
                   {"bytes", s.bytes}, {"operations", s.operations}, {"text", s.text}};
    if (limits.ok() && s.calls && s.total_ns) {
      const double each = static_cast<double>(s.total_ns) * 1e-9 / static_cast<double>(s.calls);
      o["share_of_bandwidth"] = Json(static_cast<double>(s.bytes) / each / limits->bytes_per_s);
      o["share_of_operations"] = Json(static_cast<double>(s.operations) / each / limits->operations_per_s);
    }
    steps.emplace_back(std::move(o));
  }
  return Json::Object{{"name", name_}, {"calls", calls_}, {"seconds", static_cast<double>(total_ns_) * 1e-9}, {"steps", Json(std::move(steps))}};
}

std::string GraphTimes::text() const {
  const auto& limits = machine_limits();
  const std::lock_guard lock(mutex_);
  std::string out = name_ + ": " + std::to_string(calls_) + (calls_ == 1 ? " call, " : " calls, ") + time_text(static_cast<double>(total_ns_) * 1e-9) + "\n";
  std::vector<const StepTime*> order;
  int64_t inside = 0;
  for (const StepTime& s : steps_) {
    if (s.calls) order.push_back(&s);
    inside += s.total_ns;
  }
  std::ranges::stable_sort(order, std::ranges::greater(), &StepTime::total_ns);
  char line[256];
  std::snprintf(line, sizeof line, "%12s %6s %7s %11s %18s %20s   %s\n", "time", "share", "calls", "each", "GB/s (of copies)", "GFLOP/s (of peak)", "step");
  if (!order.empty()) out += line;
  for (const StepTime* s : order) {
    const double each = static_cast<double>(s->total_ns) * 1e-9 / static_cast<double>(s->calls);
    const auto rate = [&](int64_t amount, double limit) {
      char b[48];
      if (!amount) return std::string("-");
      const double r = static_cast<double>(amount) / each;
      std::snprintf(b, sizeof b, limit > 0 ? "%.1f (%.0f %%)" : "%.1f", r * 1e-9, r / limit * 100);
      return std::string(b);
    };
    std::snprintf(line, sizeof line, "%12s %4.0f %% %7lld %11s %18s %20s   ", time_text(static_cast<double>(s->total_ns) * 1e-9).c_str(), 100.0 * static_cast<double>(s->total_ns) / static_cast<double>(std::max<int64_t>(1, total_ns_)),
                  static_cast<long long>(s->calls), time_text(each).c_str(), rate(s->bytes, limits.ok() ? limits->bytes_per_s : 0).c_str(), rate(s->operations, limits.ok() ? limits->operations_per_s : 0).c_str());
    out += line + s->name + (s->kind == "kernel" || s->kind == "product" ? "  " + s->computes : s->place.empty() ? "" : "  " + s->place) + "\n";
  }
  if (!order.empty()) out += "    between steps: " + time_text(static_cast<double>(std::max<int64_t>(0, total_ns_ - inside)) * 1e-9) + "\n";
  return out;
}

void start_profile() { profile().is_on = true; }
bool is_profiling() { return profile().is_on; }
void join_profile(std::shared_ptr<GraphTimes> graph) {
  const std::lock_guard lock(profile().mutex);
  profile().graphs.push_back(std::move(graph));
}

std::string profile_text() {
  const std::lock_guard lock(profile().mutex);
  std::string out;
  for (const auto& g : profile().graphs) out += g->text() + "\n";
  if (profile().graphs.empty()) return "nothing was compiled by the backend native\n";
  const auto& limits = machine_limits();
  char line[160];
  if (!limits.ok()) return out + limits.error().text() + "\n";
  std::snprintf(line, sizeof line, "this machine, with %d %s: copies %.1f GB/s, multiply-adds %.1f GFLOP/s (measured)\n", limits->threads, limits->threads == 1 ? "thread" : "threads", limits->bytes_per_s * 1e-9, limits->operations_per_s * 1e-9);
  return out + line;
}

std::string profile_json() {
  const std::lock_guard lock(profile().mutex);
  Json::Array graphs;
  for (const auto& g : profile().graphs) graphs.push_back(g->to_json());
  Json::Object out{{"graphs", Json(std::move(graphs))}, {"limits", Json()}};
  if (const auto& limits = machine_limits(); limits.ok()) out["limits"] = Json::Object{{"bytes_per_s", limits->bytes_per_s}, {"operations_per_s", limits->operations_per_s}, {"threads", static_cast<int64_t>(limits->threads)}};
  return Json(std::move(out)).text();
}

std::string profile_timeline() {
  const std::lock_guard lock(profile().mutex);
  std::unordered_map<const GraphTimes*, Json> known;
  for (const auto& g : profile().graphs) known.emplace(g.get(), g->to_json());
  const auto field = [](const Json& j, const char* key) -> const Json& { return j.as<Json::Object>()->find(key)->second; };
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  const int64_t pid = ::getpid();
  bool is_first = true;
  for (const Moment& m : profile().moments) {
    const auto it = known.find(m.graph);
    if (it == known.end()) continue;
    Json::Object e{{"ph", "X"}, {"pid", pid}, {"tid", static_cast<int64_t>(m.thread)}, {"ts", static_cast<double>(m.start_us)}, {"dur", static_cast<double>(m.ns) * 1e-3}, {"cat", "graph"}, {"name", field(it->second, "name")}};
    if (m.step != kWholeRun) {
      const Json& step = (*field(it->second, "steps").as<Json::Array>())[m.step];
      e["cat"] = field(step, "kind");
      e["name"] = field(step, "name");
      e["args"] = Json::Object{{"computes", field(step, "computes")}, {"place", field(step, "place")}, {"bytes", field(step, "bytes")}, {"operations", field(step, "operations")}};
    }
    out += (is_first ? "" : ",\n") + Json(std::move(e)).text();
    is_first = false;
  }
  return out + "\n]}\n";
}

}  // namespace cutaway::native
