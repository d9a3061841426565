#include "compiler/codegen/generate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/codegen/build.h"
#include "compiler/codegen/cuda_product.h"
#include "compiler/codegen/gathered.h"
#include "compiler/codegen/kept.h"
#include "compiler/codegen/planted.h"
#include "compiler/codegen/prelude.h"
#include "compiler/codegen/sizes.h"
#include "core/ir/edit.h"

namespace cutaway::codegen {
namespace {

/// Puts the groups of a fusion into the graph as calls with regions.
class Assembler {
 public:
  Assembler(const ir::Graph& graph, const Fusion& fusion, const Options& options, const std::vector<Rewritten>& rewrites) : from_graph_(graph), fusion_(fusion), options_(options), origins_(fusion.from), rewrites_(rewrites) {
    if (options.symbolic) sizes_.emplace(*options.symbolic);
  }

  Program run() {
    out_.graph = from_graph_;
    out_.graph.body.nodes.clear();
    find_stored();
    find_planted();
    const auto& nodes = from_graph_.body.nodes;
    call_gathered();
    for (size_t unit : fusion_.order) {
      if (unit < nodes.size()) {
        if (gathered_.contains(unit) || make_card_product(unit)) continue;
        auto product = options_.products ? product_of(from_graph_, origins_, nodes[unit]) : std::nullopt;
        if (product && !may_make("%" + from_graph_.value(nodes[unit].results[0]).name, nodes[unit].target)) product.reset();
        auto draw = product ? std::nullopt : draw_of(from_graph_, nodes[unit]);
        if (draw && !may_make("%" + from_graph_.value(nodes[unit].results[0]).name, nodes[unit].target)) draw.reset();
        if (draw) {
          draw->name = "r" + std::to_string(made_++);
          call(draw->name, draw->buffers, {unit}, nodes[unit].results);
          out_.draws.push_back(std::move(*draw));
        } else if (auto scatter = scatter_of(from_graph_, origins_, nodes[unit]); scatter && may_make("%" + from_graph_.value(nodes[unit].results[0]).name, nodes[unit].target)) {
          scatter->name = "s" + std::to_string(made_++);
          call(scatter->name, scatter->buffers, {unit}, nodes[unit].results);
          out_.scatters.push_back(std::move(*scatter));
        } else if (auto gradient = options_.products ? conv_gradient_of(from_graph_, origins_, nodes[unit]) : std::nullopt; gradient && may_make("%" + from_graph_.value(gradient->results[0]).name, nodes[unit].target)) {
          gradient->name = "c" + std::to_string(made_++);
          call(gradient->name, gradient->buffers, {unit}, gradient->results);
          out_.conv_gradients.push_back(std::move(*gradient));
        } else if (auto attention = options_.products ? attention_of(from_graph_, origins_, nodes[unit]) : std::nullopt; attention && may_make("%" + from_graph_.value(attention->results[0]).name, nodes[unit].target)) {
          attention->name = "a" + std::to_string(made_++);
          call(attention->name, attention->buffers, {unit}, attention->results);
          out_.attentions.push_back(std::move(*attention));
        } else if (product) call(std::move(*product), unit);
        else out_.graph.body.nodes.push_back(nodes[unit]);
        continue;
      }
      const Group& g = fusion_.groups[unit - nodes.size()];
      if (g.nodes.empty() || stored_[unit - nodes.size()].empty()) continue;   // nothing wants it
      if (!may_make(identity_of(g), name_of(g))) {
        for (size_t i : g.nodes) out_.graph.body.nodes.push_back(nodes[i]);
        continue;
      }
      if (g.product >= 0) call_with_epilogue(g, stored_[unit - nodes.size()]);
      else call(g, stored_[unit - nodes.size()], "k" + std::to_string(made_++));
    }
    ir::remove_dead_code(out_.graph);
    out_.decisions = fusion_.decisions;
    out_.decisions.insert(out_.decisions.end(), decisions_.begin(), decisions_.end());
    return std::move(out_);
  }

 private:
  /// Whether one more kernel is made; the decision is kept.
  bool may_make(std::string identity, std::string name) {
    Decision d{"kernel", std::move(identity), std::move(name), false, ""};
    if (made_ >= options_.kernels) d.reason = "the fuel is used up";
    else if (options_.without.contains(d.name)) d.reason = "switched off";
    d.done = d.reason.empty();
    decisions_.push_back(std::move(d));
    return decisions_.back().done;
  }

  bool make_card_product(size_t unit) {
    const ir::Node& n = from_graph_.body.nodes[unit];
    auto p = options_.products ? card_product_of(from_graph_, origins_, n, "p" + std::to_string(made_)) : std::nullopt;
    if (!p || !may_make("%" + from_graph_.value(n.results[0]).name, n.target)) return false;
    ++made_;
    call(p->kernel.name, p->kernel.buffers, {unit}, n.results);
    const auto [it, is_new] = text_of_.try_emplace(p->key, out_.texts.size());
    if (is_new) out_.texts.push_back({p->kernel.name, std::move(p->text.source), {}, std::move(p->text.launch), {}});
    out_.kernels.push_back({std::move(p->kernel), it->second, {}, {}});
    return true;
  }

  /// Copies of inputs come before everything else, many by one kernel.
  void call_gathered() {
    const auto& nodes = from_graph_.body.nodes;
    std::map<std::string, std::vector<std::pair<size_t, Gathered>>> by_device;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (auto found = gathered_of(from_graph_, nodes[i])) by_device[from_graph_.value(found->result).type.tensor.device.text()].emplace_back(i, std::move(*found));
    for (auto& [device, all] : by_device) {
      for (size_t first = 0; first < all.size();) {
        std::vector<Gathered> some;
        std::vector<size_t> units;
        std::vector<ir::ValueId> stored;
        size_t addresses = 0;
        for (; first < all.size(); ++first) {
          const size_t more = all[first].second.pieces.size() + 1;
          if (more > kMostGathered || (!some.empty() && addresses + more > kMostGathered)) break;
          addresses += more;
          some.push_back(all[first].second);
          units.push_back(all[first].first);
          stored.push_back(all[first].second.result);
        }
        if (some.empty()) { ++first; continue; }   // it alone has too many: torch's operator
        if (!may_make("%" + from_graph_.value(stored[0]).name, nodes[units[0]].target)) continue;
        GatheredKernel made = gathered_kernel(from_graph_, some, "w" + std::to_string(made_++));
        call(made.kernel.name, made.kernel.buffers, units, stored);
        out_.texts.push_back({made.kernel.name, std::move(made.text.source), {}, std::move(made.text.launch), {}});
        out_.kernels.push_back({std::move(made.kernel), out_.texts.size() - 1, {}, {}});
        gathered_.insert(units.begin(), units.end());
      }
    }
  }

  /// A value of a group that an operator, another kernel or the caller wants. Views of it count as it does.
  void find_stored() {
    stored_.resize(fusion_.groups.size());
    std::vector<bool> wanted(from_graph_.values.size(), false);
    const auto use = [&](auto&& self, ir::ValueId id, int32_t by) -> void {
      const ir::ValueId root = origins_.root[id].value;
      const int64_t at = origins_.producer[root].node;
      if (at >= 0 && fusion_.is_free[static_cast<size_t>(at)])   // worked out where it is wanted: what it reads is wanted there
        ir::for_each_use(from_graph_.body.nodes[static_cast<size_t>(at)], [&](ir::ValueId operand) { self(self, operand, by); });
      if (at >= 0 && fusion_.group_of[static_cast<size_t>(at)] >= 0 && fusion_.group_of[static_cast<size_t>(at)] != by) wanted[root] = true;
    };
    const auto& nodes = from_graph_.body.nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (fusion_.is_free[i]) continue;   // who uses the view counts
      for_each_use_inside(nodes[i], [&](ir::ValueId id) { use(use, id, fusion_.group_of[i]); });
    }
    for (const ir::Argument& a : from_graph_.body.outputs) ir::for_each_value(a, [&](ir::ValueId id) { use(use, id, -2); });
    for (size_t g = 0; g < fusion_.groups.size(); ++g)
      for (size_t i : fusion_.groups[g].nodes)
        if (wanted[nodes[i].results[0]] || options_.stores_all) stored_[g].push_back(nodes[i].results[0]);
  }
  void call(const Group& g, const std::vector<ir::ValueId>& stored, std::string name) {
    Kernel kernel = build_kernel(from_graph_, fusion_, g, stored, name, sizes_ ? &*sizes_ : nullptr);
    if (kernel.device.type == "cuda")
      if (const auto why = why_no_cuda(kernel)) {
        decisions_.back().done = false;
        decisions_.back().reason = *why;
        for (size_t i : g.nodes) out_.graph.body.nodes.push_back(from_graph_.body.nodes[i]);
        return;
      }
    call(name, kernel.buffers, g.nodes, stored);
    keep(std::move(kernel), g);
  }

  /// Its text, which others may share.
  size_t keep(Kernel kernel, const Group& g) {
    for (size_t i : g.nodes)
      if (const std::string& value = from_graph_.value(from_graph_.body.nodes[i].results[0]).name; planted_.contains(value)) make_wrong(kernel, value);
    std::vector<int64_t> sizes;
    std::string key = kernel.is_general ? emit_cpp(without_names(kernel), options_.lanes, &sizes) : kernel.device.type + structure(kernel);
    if (kernel.device.type == "cuda" && kernel.checks_indices())   // its message has the user's line
      for (const std::string& line : kernel.comment) key += "\n" + line;
    const auto [it, is_new] = text_of_.try_emplace(key, out_.texts.size());
    const Work work = kernel.device.type == "cuda" ? Work{} : work_of(kernel, options_.lanes);
    if (is_new && kernel.device.type == "cuda") {
      CudaText made = emit_cuda(kernel);
      out_.texts.push_back({kernel.name, std::move(made.source), {}, std::move(made.launch), {}});
    } else if (is_new) {
      out_.texts.push_back({kernel.name, emit_cpp(kernel, options_.lanes), work, std::nullopt, kernel.is_general ? std::move(key) : std::string()});
    }
    out_.kernels.push_back({std::move(kernel), it->second, work, std::move(sizes)});
    return it->second;
  }

  void call_with_epilogue(const Group& g, std::vector<ir::ValueId> stored) {
    const ir::Node& node = from_graph_.body.nodes[static_cast<size_t>(g.product)];
    Product product = *product_of(from_graph_, origins_, node);
    const ir::ValueId tile = node.results[0];
    product.name = "p" + std::to_string(made_++);
    Kernel kernel = build_kernel(from_graph_, fusion_, g, stored, product.name, sizes_ ? &*sizes_ : nullptr);
    // Where the product's own result goes: nobody else may want it, and then it lies where the epilogue's result will be.
    ir::ValueId place = tile;
    if (std::ranges::find(stored, tile) == stored.end()) {
      const Term& load = *std::ranges::find_if(kernel.terms, [&](const Term& t) { return t.op == Op::load && kernel.buffers[t.buffer].value == tile; });
      const auto same = std::ranges::find_if(kernel.stores, [&](const Store& s) { return s.memory == load.memory && s.access == load.access; });
      if (same != kernel.stores.end()) place = kernel.buffers[same->buffer].value;
      else stored.insert(stored.begin(), tile);
    }
    std::erase_if(product.buffers, [](const Buffer& b) { return b.is_written; });
    const auto number_of = [&](ir::ValueId id) {
      return static_cast<uint32_t>(std::ranges::find(product.buffers, id, &Buffer::value) - product.buffers.begin());
    };
    for (const Buffer& b : kernel.buffers)
      if (!b.is_written && b.value != tile && number_of(b.value) == product.buffers.size()) product.buffers.push_back(b);
    for (ir::ValueId id : stored) product.buffers.push_back({id, from_graph_.value(id).name, from_graph_.value(id).type.tensor.dtype, true});
    product.c.buffer = number_of(place);
    for (const Buffer& b : kernel.buffers) product.epilogue_buffers.push_back(number_of(b.value == tile ? place : b.value));
    call(product.name, product.buffers, g.nodes, stored);
    product.epilogue = keep(std::move(kernel), g);
    out_.products.push_back(std::move(product));
  }

  void call(Product product, size_t node) {
    product.name = "p" + std::to_string(made_++);
    call(product.name, product.buffers, {node}, from_graph_.body.nodes[node].results);
    out_.products.push_back(std::move(product));
  }

  /// A node that stands for these, with them in its region.
  void call(const std::string& name, const std::vector<Buffer>& buffers, const std::vector<size_t>& nodes, const std::vector<ir::ValueId>& stored) {
    ir::Node n;
    n.kind = ir::Node::Kind::call;
    n.target = "native." + name;
    for (const Buffer& b : buffers)
      if (!b.is_written) n.args.push_back(ir::ValueRef{b.value});
    n.location = from_graph_.body.nodes[nodes.back()].location;
    n.regions.push_back(region(nodes));
    ir::Block& block = n.regions[0];
    // Inside the region values have names of their own: a name is defined once in a graph.
    std::map<ir::ValueId, ir::ValueId> inner;
    for (ir::Node& x : block.nodes)
      for (ir::ValueId& r : x.results) {
        const ir::Value& v = from_graph_.value(r);
        const ir::ValueId own = out_.graph.add_value(v.name, v.type);
        inner[r] = own;
        r = own;
      }
    for (ir::Node& x : block.nodes) {
      const auto rename = [&](ir::ValueId& id) { if (auto it = inner.find(id); it != inner.end()) id = it->second; };
      for (ir::Argument& a : x.args) ir::for_each_value(a, rename);
      for (auto& [key, a] : x.kwargs) ir::for_each_value(a, rename);
    }
    // What a rule does not read (a loss's scores in its backward) its operator still asks for: arguments behind those that are buffers.
    std::set<ir::ValueId> known;
    for (const ir::Argument& a : n.args) known.insert(a.as<ir::ValueRef>()->id);
    for (const auto& [outside, own] : inner) known.insert(own);
    for (const ir::Node& x : block.nodes)
      ir::for_each_use(x, [&](ir::ValueId id) { if (known.insert(id).second) n.args.push_back(ir::ValueRef{id}); });
    for (ir::ValueId id : stored) {
      n.results.push_back(id);
      n.returns.push_back(ir::Node::kSingle);
      block.outputs.push_back(ir::ValueRef{inner.at(id)});
    }
    out_.graph.body.nodes.push_back(std::move(n));
  }

  std::string identity_of(const Group& g) const { return "%" + from_graph_.value(from_graph_.body.nodes[g.nodes.back()].results[0]).name; }
  std::string name_of(const Group& g) const {
    std::string name;
    for (size_t i : g.nodes) name += (name.empty() ? "" : "+") + from_graph_.body.nodes[i].target;
    return name;
  }

  /// For tests: the values that are computed wrongly.
  void find_planted() {
    if (options_.planted.empty()) return;
    std::vector<std::string> names;
    for (const Group& g : fusion_.groups) names.push_back(name_of(g));
    planted_ = planted_values(options_.planted, from_graph_, fusion_, rewrites_, names);
  }

  /// The nodes with the views and constants that they use, in order.
  ir::Block region(const std::vector<size_t>& of) const {
    const auto& nodes = from_graph_.body.nodes;
    std::set<size_t> needed(of.begin(), of.end());
    std::vector<size_t> todo(of.begin(), of.end());
    while (!todo.empty()) {
      const size_t i = todo.back();
      todo.pop_back();
      ir::for_each_use(nodes[i], [&](ir::ValueId id) {
        const int64_t at = origins_.producer[id].node;
        if (at >= 0 && fusion_.is_free[static_cast<size_t>(at)] && needed.insert(static_cast<size_t>(at)).second) todo.push_back(static_cast<size_t>(at));
      });
    }
    ir::Block b;
    for (size_t i : needed) b.nodes.push_back(nodes[i]);
    return b;
  }

  const ir::Graph& from_graph_;
  const Fusion& fusion_;
  const Options& options_;
  const Origins& origins_;
  Program out_;
  std::vector<std::vector<ir::ValueId>> stored_;
  std::optional<SymbolicSizes> sizes_;
  std::map<std::string, size_t> text_of_;
  const std::vector<Rewritten>& rewrites_;
  std::vector<Decision> decisions_;
  std::set<std::string> planted_;
  std::set<size_t> gathered_;   ///< nodes that are a part of a kernel of copies
  int64_t made_ = 0;
};

}  // namespace

std::string file_of(const std::vector<const Text*>& texts, int lanes) {
  std::string out = prelude(lanes);
  for (const Text* t : texts) out += "\n" + t->source;
  return out;
}

bool Program::has_cpu_texts() const { return std::ranges::any_of(texts, [](const Text& t) { return !t.cuda; }); }
bool Program::has_cuda_texts() const { return std::ranges::any_of(texts, [](const Text& t) { return t.cuda.has_value(); }); }
std::string Program::cuda_source(const std::vector<size_t>& which) const {
  std::string out = cuda_prelude();
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].cuda && (which.empty() || std::ranges::find(which, i) != which.end())) out += "\n" + texts[i].source;
  return out;
}

std::string Program::source(int lanes) const {
  std::vector<const Text*> all;
  for (const Text& t : texts)
    if (!t.cuda) all.push_back(&t);
  return file_of(all, lanes);
}

Program generate(const ir::Graph& graph, const Options& options, debug::Sink* sink) {
  debug::Phase phase(sink, "native", "generate");
  ir::Graph rewritten = graph;
  const Kept kept(rewritten);
  RewriteOptions allowed = options.rewrites;
  if (options.symbolic) allowed.off.insert({"var", "std", "var_mean", "batch_norm_training", "batch_norm_backward", "group_norm_backward", "max_pool2d", "adaptive_avg_pool2d_backward", "long sum", "sum of blocks"});   // they put counts of one size into the text
  std::vector<Rewritten> rewrites = rewrite(rewritten, allowed);
  ir::remove_dead_code(rewritten);
  Fuel fuel = options.fuel;
  fuel.epilogues = fuel.epilogues && options.products;
  fuel.serves_every_size = options.symbolic != nullptr;
  Fusion fusion = fuse(rewritten, fuel);
  Program program = Assembler(rewritten, fusion, options, rewrites).run();
  kept.put_back(program.graph);
  kept.put_back(rewritten);
  if (options.plan) program.memory = plan_memory(program.graph);
  program.rewritten = std::move(rewritten);
  program.rewrites = std::move(rewrites);
  for (const Rewritten& r : program.rewrites) debug::decide(sink, "native", "rewrite", r.row, {{"value", std::string_view(r.value)}}, debug::Level::debug);
  for (const Decision& d : program.decisions)
    debug::decide(sink, "native", d.action, d.done ? (d.reason.empty() ? "done" : std::string_view(d.reason)) : std::string_view(d.reason), {{"what", std::string_view(d.identity)}, {"done", d.done}}, debug::Level::debug);
  phase.note("kernels", static_cast<int64_t>(program.kernels.size()));
  phase.note("texts", static_cast<int64_t>(program.texts.size()));
  phase.note("planned_bytes", program.memory.bytes);
  phase.note("unplanned_bytes", program.memory.apart);
  return program;
}

}  // namespace cutaway::codegen
