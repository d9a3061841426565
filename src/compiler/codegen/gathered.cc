#include "compiler/codegen/gathered.h"

#include <algorithm>
#include <map>

#include "compiler/codegen/views.h"

namespace cutaway::codegen {
namespace gathering {   // its helpers have names that other files of the folder use too
namespace {

constexpr int64_t kThreads = 256, kBytes = 16 * kThreads * 4;   ///< that a block copies: four vectors a thread
constexpr int64_t kElements = kThreads * 16;                   ///< that a block lays out anew
constexpr int64_t kTileBytes = 16384;                          ///< of shared memory for that

/// How a block's part of a piece is cut: channels, and how many of the first dimension. No channels: places are too many for a tile.
struct Tile { int64_t channels = 0, many = 0; };
Tile tile_of(const Gathered::Piece& p) {
  const int64_t most = std::min(kElements, kTileBytes / p.element), channels = std::min<int64_t>({p.channels, 256, most / p.places});
  if (channels < 1 || (channels < 16 && channels < p.channels)) return {};
  const int64_t count = p.bytes / p.element / (p.channels * p.places);
  return {channels, channels == p.channels ? std::clamp<int64_t>(most / (p.channels * p.places), 1, count) : 1};
}

std::string spelled(int64_t n) { return std::to_string(n); }

bool is_input(const ir::Graph& g, ir::ValueId id) { return std::ranges::any_of(g.inputs, [&](const ir::Input& in) { return in.value == id; }); }

std::optional<Gathered> cat_of(const ir::Graph& g, const ir::Node& n) {
  const auto* list = n.args.empty() ? nullptr : n.args[0].as<ir::List>();
  if (!list || list->items.size() < 2 || !n.kwargs.empty() || n.args.size() > 2 || (n.args.size() == 2 && !(n.args[1].as<int64_t>() && *n.args[1].as<int64_t>() == 0))) return std::nullopt;
  const ir::TensorType& result = g.value(n.results[0]).type.tensor;
  Gathered found{n.results[0], {}};
  int64_t at = 0;
  for (const ir::Argument& a : list->items) {
    const auto* r = a.as<ir::ValueRef>();
    if (!r || !is_input(g, r->id)) return std::nullopt;
    const ir::Type& t = g.value(r->id).type;
    const auto s = shape_of(t);
    if (!s || s->sizes.empty() || s->sizes.size() != result.sizes.size() || !t.tensor.is_contiguous() || t.tensor.dtype != result.dtype || t.tensor.device != result.device) return std::nullopt;
    const int64_t bytes = s->numel() * ir::dtype_bytes(t.tensor.dtype);
    if (bytes == 0 || bytes % 16 != 0) return std::nullopt;
    found.pieces.push_back({r->id, at, bytes});
    at += bytes;
  }
  return found;
}

std::optional<Gathered> clone_of(const ir::Graph& g, const ir::Node& n) {
  const auto* r = n.args.size() == 1 ? n.args[0].as<ir::ValueRef>() : nullptr;
  if (!r || n.kwargs.size() != 1 || n.kwargs[0].first != "memory_format" || !n.kwargs[0].second.as<ir::MemoryFormat>() || *n.kwargs[0].second.as<ir::MemoryFormat>() != ir::MemoryFormat::channels_last || !is_input(g, r->id)) return std::nullopt;
  const ir::Type& t = g.value(r->id).type;
  const auto s = shape_of(t), to = shape_of(g.value(n.results[0]).type);
  const int64_t element = ir::dtype_bytes(t.tensor.dtype);
  if (!s || !to || s->sizes.size() != 4 || s->numel() == 0 || !t.tensor.is_contiguous() || (element != 2 && element != 4)) return std::nullopt;
  const int64_t c = s->sizes[1], h = s->sizes[2], w = s->sizes[3];
  if (c == 1 || h * w == 1 || to->strides != std::vector<int64_t>{c * h * w, 1, w * c, c}) return std::nullopt;
  return Gathered{n.results[0], {{r->id, 0, s->numel() * element, c, h * w, element}}};
}

}  // namespace
}  // namespace gathering

std::optional<Gathered> gathered_of(const ir::Graph& g, const ir::Node& n) {
  using namespace gathering;
  if (n.kind != ir::Node::Kind::op || n.results.size() != 1 || (n.target != "aten.cat" && n.target != "aten.clone")) return std::nullopt;
  const ir::Type& type = g.value(n.results[0]).type;
  if (!shape_of(type) || type.tensor.device.type != "cuda") return std::nullopt;
  if (n.target == "aten.clone") return clone_of(g, n);
  return type.tensor.is_contiguous() ? cat_of(g, n) : std::nullopt;
}

GatheredKernel gathered_kernel(const ir::Graph& g, const std::vector<Gathered>& all, std::string name) {
  using namespace gathering;
  GatheredKernel made;
  Kernel& k = made.kernel;
  k.name = std::move(name);
  k.sizes = {1};
  k.inner_dims = 1;
  k.device = g.value(all[0].result).type.tensor.device;
  std::map<ir::ValueId, size_t> number;
  const auto add = [&](ir::ValueId id, bool is_written) {
    if (number.try_emplace(id, k.buffers.size()).second) k.buffers.push_back({id, g.value(id).name, g.value(id).type.tensor.dtype, is_written});
  };
  for (const Gathered& one : all)
    for (const Gathered::Piece& p : one.pieces) add(p.from, false);
  for (const Gathered& one : all) add(one.result, true);
  std::string source = "// native." + k.name + ": inputs of the graph, one behind the other or in another layout\n";
  source += "extern \"C\" __global__ void __launch_bounds__(" + spelled(kThreads) + ") " + k.name + "(";
  for (size_t i = 0; i < k.buffers.size(); ++i) source += (i ? ", " : "") + std::string(k.buffers[i].is_written ? "" : "const ") + "char* __restrict b" + spelled(static_cast<int64_t>(i));
  source += ") {\n  __shared__ __align__(16) char tile[" + spelled(kTileBytes) + "];\n  (void)tile;\n  const long block = blockIdx.x;\n";
  int64_t blocks = 0;
  for (const Gathered& one : all) {
    for (const Gathered::Piece& p : one.pieces) {
      const Tile tile = p.element ? tile_of(p) : Tile{};
      const int64_t whole = p.element ? p.bytes / p.element / (p.channels * p.places) : 0;
      const int64_t own = tile.channels ? (whole + tile.many - 1) / tile.many * ((p.channels + tile.channels - 1) / tile.channels)
                          : p.element ? (p.bytes / p.element + kElements - 1) / kElements : (p.bytes + kBytes - 1) / kBytes;
      const std::string from = "b" + spelled(static_cast<int64_t>(number.at(p.from))), to = "b" + spelled(static_cast<int64_t>(number.at(one.result))) + (p.at ? " + " + spelled(p.at) : "");
      source += "  " + std::string(blocks ? "else " : "") + "if (block < " + spelled(blocks + own) + "l) ";
      const std::string nth = "block - " + spelled(blocks) + "l";
      const std::string type = p.element == 2 ? "unsigned short" : "unsigned int";
      if (tile.channels) source += "channels_last<" + type + ", " + spelled(p.channels) + ", " + spelled(p.places) + ", " + spelled(tile.channels) + ", " + spelled(tile.many) + ">(" + from + ", " + to + ", " + nth + ", " + spelled(p.bytes / p.element) + "l, (" + type + "*)tile);\n";
      else if (p.element) source += "few_channels_last<" + type + ", " + spelled(p.channels) + ", " + spelled(p.places) + ", " + spelled(kElements) + ">(" + from + ", " + to + ", " + nth + ", " + spelled(p.bytes / p.element) + "l);\n";
      else source += "copy_part<" + spelled(kThreads) + ", 4>(" + from + ", " + to + ", " + nth + ", " + spelled(p.bytes) + "l);\n";
      blocks += own;
    }
  }
  source += "}\n";
  made.text.source = std::move(source);
  made.text.launch.blocks = blocks;
  made.text.launch.threads = kThreads;
  made.text.launch.alignment.assign(k.buffers.size(), 16);
  return made;
}

}  // namespace cutaway::codegen
