// A bundle: one directory that holds a graph, its inputs and everything needed to fail again elsewhere.
// Reading one executes nothing. docs/formats/bundle.md is its document; this folder owns the format.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/bundle/tensor_record.h"
#include "core/ir/graph.h"
#include "core/store/store.h"

namespace cutaway::bundle {

inline constexpr int kManifestVersion = 1;

/// One input of the graph, in order. A tensor has a record; with data in the store, or seeded.
struct InputRef {
  enum class Kind : uint8_t {
    data,      ///< tensor, storage in the store
    seeded,    ///< tensor, no data: random by `seed`, because data was too large, absent, or the caller asked
    literal,   ///< not a tensor
    filled,    ///< tensor, no data: every element is `fill`; what a reduction simplifies data to
  };
  Kind kind = Kind::data;
  TensorRecord tensor;
  uint64_t seed = 0;
  /// Seeded: whole numbers in [first, second), for any dtype. Absent: as tensor::rand_strided says.
  std::optional<std::pair<int64_t, int64_t>> range;
  double fill = 0;
  bool make_contiguous = false;                       ///< data: laid out contiguously once loaded (the record keeps the stored strides)
  std::string reason;                                 ///< seeded: why there is no data
  ir::Argument literal;
  bool operator==(const InputRef&) const = default;
};

/// How a run failed, normalised so that two runs of one bug compare equal.
struct FailureSignature {
  std::string kind;        ///< "exception", "crash", "hang", "memory", "accuracy"; empty: none recorded
  std::string stage;       ///< "capture", "aot", "backend"
  std::string type;        ///< exception type
  std::string op;          ///< operator that the failure names
  std::string signal;      ///< "SIGSEGV"
  std::string message;     ///< normalised
  std::string user_frame;  ///< "model.py:23 Block.forward"
  bool operator==(const FailureSignature&) const = default;
};

/// manifest.json as data.
struct Manifest {
  std::string name;                                  ///< of the graph
  std::string stage;                                 ///< "capture", "aot" or empty
  std::string backend;                               ///< empty: none chosen
  std::string tracing_mode = "real";                 ///< real, fake, symbolic
  std::string accuracy;                              ///< "", "accuracy", "strict"
  ir::RegionState state;                             ///< grad, inference and autocast state around the call
  std::optional<ir::RegionState> backward_state;     ///< around the backward pass; absent: as around the call
  std::map<std::string, std::string> process;        ///< settings of the process that are not torch's defaults (exec/process_settings.h)
  std::map<std::string, std::string> generators;     ///< device -> state of its random generator before the call, in hexadecimal digits; others: `seed`
  uint64_t seed = 0;                                 ///< of the global random state before the run
  bool random_inputs = false;                        ///< the caller asked for random data in place of recorded data
  std::vector<InputRef> inputs;
  FailureSignature failure;
  std::map<std::string, std::string> options;        ///< backend options that differ from their defaults, as JSON text
  std::map<std::string, std::string> environment;    ///< variables that matter
  std::vector<std::string> libraries;                ///< custom-operator libraries, by import name
  std::map<std::string, std::string> versions;       ///< torch, python, cutaway, compiler
  std::map<std::string, std::string> hardware;
  std::map<std::string, std::string> extra;          ///< later parts add theirs by name; values are JSON text
  bool operator==(const Manifest&) const = default;
};

/// Sorted, indented, the same text for the same manifest. Precondition for reading it back: strings are UTF-8, words are those
/// documented above, options and extra hold JSON (text that does not is written as a string). write_bundle checks all of it.
std::string manifest_to_json(const Manifest&, const base::Digest& graph_digest);
struct ParsedManifest { Manifest manifest; base::Digest graph_digest; };
/// Rejects an unknown version, unknown fields, wrong kinds and absurd sizes, each with place and reason.
base::Result<ParsedManifest> manifest_from_json(std::string_view text, std::string_view place);

/// A bundle in memory; tensors stay in its store.
struct Bundle {
  std::filesystem::path path;
  ir::Graph graph;
  Manifest manifest;
};

/// Writes manifest.json and graph.cut; the blobs named by the inputs must be in `blobs` and are linked or copied into path/blobs.
/// Atomic: a reader sees the old bundle, the new one, or none. An old bundle at that path is replaced whole (its report and
/// certificate belong to the old graph); a directory with anything else in it is refused.
base::Status write_bundle(const std::filesystem::path& path, const ir::Graph&, const Manifest&, const store::Store& blobs);
/// Reads and checks manifest, graph (parsed, verified, digest compared), that the two agree about the inputs, and the presence and
/// size of every blob (contents are verified when a tensor is loaded). Blobs::ignored is for a caller that runs on random data.
enum class Blobs { required, ignored };
base::Result<Bundle> read_bundle(const std::filesystem::path& path, Blobs = Blobs::required);
/// The manifest alone.
base::Result<ParsedManifest> read_manifest(const std::filesystem::path& path);
/// read_bundle's checks and also the content of every blob.
base::Status verify_bundle(const std::filesystem::path& path);
/// A directory with a manifest.json and a graph.cut in it.
bool looks_like_bundle(const std::filesystem::path& path);
base::Result<store::Store> open_store(const Bundle&);

}  // namespace cutaway::bundle
