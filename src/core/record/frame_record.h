// A frame that could not be captured, as data: its code, its arguments, the globals it names, the results of calls that were not interpreted,
// and how capture failed. A record is a directory: record.json and blobs/. Reading one executes nothing; docs/formats/frame_record.md is
// its document. What Python objects become here, and how they are made again, is in compiler/replay.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/base/result.h"
#include "core/bundle/bundle.h"
#include "core/ir/graph.h"
#include "core/store/store.h"

namespace cutaway::record {

inline constexpr int kVersion = 1;
/// Position in FrameRecord::objects.
using ObjectId = int64_t;
inline constexpr ObjectId kAbsent = -1;

/// A Python object. `kind` says which of the other fields there are (object_kinds()); references may point anywhere in the list, cycles too.
struct Object {
  std::string kind;
  std::string text;                      ///< numbers, text, names of dtypes and devices
  std::string module, name;              ///< where an importable object is; names of classes, functions and code
  std::vector<ObjectId> items;           ///< parts of containers (key, value, … of mappings), bases, cells of a closure, values of slots
  ObjectId type = kAbsent;               ///< class of an instance, metaclass of a class
  ObjectId attributes = kAbsent;         ///< the instance's or function's __dict__, a class's namespace: a dict
  ObjectId content = kAbsent;            ///< what a subclass of a container or number holds
  ObjectId code = kAbsent, scope = kAbsent, defaults = kAbsent, keyword_defaults = kAbsent;   ///< of a function
  int64_t tensor = -1;                   ///< position in FrameRecord::tensors
  base::Digest blob;                     ///< marshalled code, bytes
  std::string because;                   ///< of an opaque one: why it was not recorded
  bool operator==(const Object&) const = default;
};

/// What an object of a kind is made of. Upper-case letters are fields that it must have, lower-case ones that it may have:
/// t text, m module, n name, i items, y type, a attributes, c content, k code, s scope, d defaults, e keyword_defaults, x tensor, b blob, r because.
struct ObjectKind {
  std::string_view name, fields;
  int items;                             ///< how many: a number, kAny or kPairs
  std::string_view summary;
};
inline constexpr int kAny = -1, kPairs = -2;
std::span<const ObjectKind> object_kinds();

struct StackFrame {
  std::string file, function, text;
  int64_t line = 0;
  bool operator==(const StackFrame&) const = default;
};

/// How capture failed. Stack: the user's, outermost first.
struct Failure {
  std::string kind;         ///< "internal-error" or "unsupported"
  std::string id;           ///< stable id of the reason
  std::string what, hint;
  std::string instruction;  ///< "BUILD_MAP at 12"; empty where none was at hand
  std::vector<StackFrame> stack;
  bool operator==(const Failure&) const = default;
};

/// A call that capture executed instead of interpreting it, and what it gave, in the order in which the trace made them.
struct CallResult {
  std::string call;
  ObjectId value = kAbsent;
  bool operator==(const CallResult&) const = default;
};

/// What the user said about a function: cutaway.assume_constant_result and its like.
struct Mark {
  ObjectId object = kAbsent;
  std::string mark;         ///< "graph_break", "allow_in_graph", "constant_result", "reorderable"
  bool operator==(const Mark&) const = default;
};

struct DynamicSize {
  std::string source;
  int64_t dim = 0;
  bool operator==(const DynamicSize&) const = default;
};

struct FrameRecord {
  std::string function, file;                 ///< of the frame, for people
  int64_t line = 0;
  ObjectId callee = kAbsent;                  ///< the function object
  std::vector<ObjectId> arguments;            ///< slots of the frame as it began; kAbsent: unbound
  Failure failure;
  bool fullgraph = false, all_dynamic = false, runs_python = false;
  std::vector<DynamicSize> dynamic;
  ir::RegionState state;                      ///< grad mode, inference mode, autocast
  std::string default_dtype = "f32";
  std::map<std::string, std::string> planted; ///< switches of tests that were on; none in a record of a user's
  std::vector<CallResult> results;
  std::vector<Mark> marks;
  std::vector<Object> objects;
  std::vector<bundle::InputRef> tensors;
  std::map<std::string, std::string> versions;   ///< python, torch, cutaway, bytecode
  bool operator==(const FrameRecord&) const = default;
};

/// Sorted, indented, the same text for the same record.
std::string to_json(const FrameRecord&);
/// Rejects another version, unknown kinds and fields, references out of range or to the wrong kind, each with place and reason.
base::Result<FrameRecord> from_json(std::string_view text, std::string_view place);

/// Writes record.json; the blobs have been put into a store rooted there. Atomic.
base::Status write_record(const std::filesystem::path& directory, const FrameRecord&);
/// Reads and checks record.json and looks for every blob by presence and size. Executes nothing, follows no link.
base::Result<FrameRecord> read_record(const std::filesystem::path& directory);
base::Result<store::Store> open_blobs(const std::filesystem::path& directory);
/// A directory with a record.json in it.
bool looks_like_record(const std::filesystem::path& directory);

/// What replaying would do besides interpreting: which modules it imports. Sorted.
std::vector<std::string> imported_modules(const FrameRecord&);
/// For people: the frame, the failure, what is in it, what could not be recorded.
std::string summary(const FrameRecord&);

}  // namespace cutaway::record
