#include "compiler/guards/guard_tree.h"

#include <algorithm>

#include "compiler/bytecode/dict_version.h"
#include "compiler/guards/tensor_object.h"

namespace cutaway::guards {
namespace {

// Cheap and selective first.
int cost(GuardKind kind) {
  switch (kind) {
    case GuardKind::type: return 0;
    case GuardKind::id: case GuardKind::code: case GuardKind::type_version: return 1;
    case GuardKind::length: case GuardKind::truth: return 2;
    case GuardKind::const_eq: return 3;
    case GuardKind::tensor: return 4;
    default: return 5;
  }
}

// Instances of classes, and modules, may be given another class.
bool may_change_class(PyTypeObject* t) { return PyType_HasFeature(t, Py_TPFLAGS_HEAPTYPE) || t == &PyModule_Type; }

// True where the same object always gives the same answer, so that an unchanged container makes another check needless.
bool depends_on_identity_alone(const Guard& g) {
  switch (g.kind) {
    case GuardKind::id: return true;
    case GuardKind::type: return !may_change_class(reinterpret_cast<PyTypeObject*>(g.operand.get()));
    case GuardKind::const_eq: return true;                   // constants are immutable
    default: return false;
  }
}

// True where an unchanged version of the dictionary itself means an unchanged answer.
bool depends_on_version_alone(const Guard& g) {
  switch (g.kind) {
    case GuardKind::dict_keys: return g.number == 0;
    case GuardKind::length: case GuardKind::contains: case GuardKind::lacks: return true;
    default: return depends_on_identity_alone(g);
  }
}

// Traces look at the same thing many times.
bool same_guard(const Guard& a, const Guard& b) {
  return a.kind == b.kind && a.source == b.source && a.number == b.number && a.most == b.most && a.other == b.other && a.others == b.others && a.operand == b.operand &&
         a.tensor == b.tensor && !a.relation && !b.relation;
}

bool is_relation(GuardKind k) {
  return k == GuardKind::same_object || k == GuardKind::different_objects || k == GuardKind::no_overlap || k == GuardKind::size_equal || k == GuardKind::size_relation;
}

}  // namespace

struct GuardTree::Node {
  SourceKind kind = SourceKind::function;
  int64_t index = 0;
  PyObject* key = nullptr;            // held by the source, or alive as long as the entry is
  const Source* source = nullptr;
  Node* base = nullptr;
  PyTypeObject* exact_type = nullptr; // of a guard on the type: the commonest one, checked without a call
  std::vector<const Guard*> leaves;   // by cost
  std::vector<const Guard*> restless; // of these, what an unchanged dictionary does not answer
  std::vector<std::unique_ptr<Node>> children;
  std::vector<Node*> moving;          // of these, what an unchanged container does not answer
  bool versioned = false;             // a version is worth asking for
  std::vector<int32_t> wanted;        // places in `values`
  bool owned = false;                 // the last read made its value
  bool restless_value = false;        // another object from call to call: no use in remembering it
  bool stable = false;                // nothing to check or to hand out while the container is unchanged
  // Of a container (dictionary, type): what it was at the last success, and its version.
  PyObject* container = nullptr;
  uint64_t version = 0;
  PyObject* last = nullptr;           // of a child of a container: its value then; valid while the container's version stays
  PyObject* recorded = nullptr;       // the value that the steps know: a walk that fails half-way changes `last`, and the steps stay
};

struct GuardTree::Walk {
  const FrameView& frame;
  std::vector<ObjectRef>& values;

  static uint64_t version_of(PyObject* o) {
    if (PyDict_Check(o)) return bytecode::dict_version(o);
    if (PyType_Check(o) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(o), Py_TPFLAGS_VALID_VERSION_TAG)) return reinterpret_cast<PyTypeObject*>(o)->tp_version_tag;
    return 0;   // no version: never unchanged
  }
  static bool is_versioned(SourceKind kind) { return kind == SourceKind::dict_item || kind == SourceKind::type_attr; }

  bool visit_value(Node& n, PyObject* value) {
    if (n.exact_type && Py_TYPE(value) != n.exact_type) return false;
    const uint64_t version = n.versioned ? version_of(value) : 0;
    const bool unchanged = version != 0 && n.container == value && n.version == version;
    for (const Guard* g : unchanged ? n.restless : n.leaves)
      if (!holds(*g, value)) return false;
    for (int32_t w : n.wanted) values[w] = ObjectRef::borrow(value);
    if (unchanged) {
      for (Node* c : n.moving)
        if (!(is_versioned(c->kind) ? visit_value(*c, c->last) : read_and_visit(*c, value))) return false;
      return true;
    }
    n.container = nullptr;   // the children's values change from here on, also when a later one fails
    for (const auto& child : n.children)
      if (!read_and_visit(*child, value)) return false;
    // All of it held: from now on it is known what an unchanged container means.
    if (version) { n.container = value; n.version = version; }
    return true;
  }

  bool read_and_visit(Node& c, PyObject* base) {
    bool owned = false;
    PyObject* value = read_step(c.kind, c.key, c.index, base, frame, owned);
    if (!value) return false;
    const ObjectRef keep = owned ? ObjectRef::steal(value) : ObjectRef();
    if (!visit_value(c, value)) return false;
    c.last = value;
    c.owned = owned;
    return true;
  }
};

// What is left to check after a success, as a flat list: as long as a step holds, the objects of the steps behind it are the ones of
// then and alive, because the containers that lead to them are unchanged. A step that does not hold proves nothing: the tree is walked.
struct GuardTree::Step {
  enum class Op : uint8_t { local, read, dict, version, type, leaf, tensor, want, visit } op;
  int32_t index = 0;            // of a local or of a wanted value
  PyObject* object = nullptr;   // what is looked at; null: the frame's function
  union {
    PyObject* expected;
    uint64_t version;
    PyTypeObject* type;
    const Guard* guard;
  };
  Node* node = nullptr;
};

struct GuardTree::StepWriter {
  std::vector<Step>& steps;

  Step& add(Step::Op op, PyObject* object, Node* node) {
    Step s{op};
    s.object = object;
    s.node = node;
    s.expected = nullptr;
    steps.push_back(s);
    return steps.back();
  }

  // `is_proven`: it is the very object of then, because an unchanged container says so. An address alone says less: another object may lie there
  // now, so everything that was asked about the object is asked again; what its dictionary holds is then proven by the version, which is unique.
  void value(Node& n, PyObject* o, bool is_proven) {
    if (n.exact_type && (!is_proven || may_change_class(n.exact_type))) add(Step::Op::type, o, &n).type = n.exact_type;
    const uint64_t version = n.versioned ? Walk::version_of(o) : 0;
    if (version) add(Step::Op::version, o, &n).version = version;
    // No two dictionaries, nor two states of one, have the same version: where it is the same, only what it does not tell is asked again.
    for (const Guard* g : version ? n.restless : n.leaves)
      if (version || !is_proven || !depends_on_identity_alone(*g)) add(g->kind == GuardKind::tensor ? Step::Op::tensor : Step::Op::leaf, o, &n).guard = g;
    for (int32_t w : n.wanted) add(Step::Op::want, o, &n).index = w;
    for (const auto& c : n.children) child(*c, o, version != 0, is_proven);
  }

  void child(Node& c, PyObject* base, bool is_base_versioned, bool is_base_proven) {
    c.recorded = c.last;
    const bool is_proven = (is_base_versioned && Walk::is_versioned(c.kind)) || (is_base_proven && c.kind == SourceKind::tuple_item) || c.kind == SourceKind::constant;
    if (is_proven && c.stable && !c.restless_value) return;   // is_unchanged leaves a restless one to its step
    if (c.restless_value || c.owned || (c.kind == SourceKind::local && c.children.empty())) {
      add(Step::Op::visit, base, &c);
      return;
    }
    if (c.kind == SourceKind::local) {
      Step& s = add(Step::Op::local, base, &c);
      s.index = static_cast<int32_t>(c.index);
      s.expected = c.last;
    } else if (c.kind == SourceKind::instance_dict && !PyType_Check(base)) {
      add(Step::Op::dict, base, &c).expected = c.last;
    } else if (!is_proven) {
      add(Step::Op::read, base, &c).expected = c.last;
    }
    value(c, c.last, is_proven);
  }
};

// False: nothing is known, and `failed_` says which node's value was another one, if that was it.
bool GuardTree::run_steps(const FrameView& frame, std::vector<ObjectRef>& values) {
  Walk walk{frame, values};
  failed_ = nullptr;
  auto* function = reinterpret_cast<PyObject*>(frame.function);
  for (Step& s : steps_) {
    switch (s.op) {
      case Step::Op::local:
        if (s.index >= frame.slot_count || frame.slots[s.index] != s.expected) { failed_ = s.node; return false; }
        break;
      case Step::Op::read: {
        bool owned = false;
        PyObject* value = read_step(s.node->kind, s.node->key, s.node->index, s.object ? s.object : function, frame, owned);
        if (owned) Py_XDECREF(value);
        if (owned || value != s.expected) { failed_ = s.node; return false; }
        break;
      }
      case Step::Op::dict: {
        PyObject** place = _PyObject_GetDictPtr(s.object);
        if (!place || *place != s.expected) { failed_ = s.node; return false; }
        break;
      }
      case Step::Op::version: {
        const uint64_t version = Walk::version_of(s.object);
        if (version && version == s.version) break;
        if (!is_unchanged(*s.node, s.object)) return false;
        s.version = Walk::version_of(s.object);
        break;
      }
      case Step::Op::type:
        if (Py_TYPE(s.object) != s.type) return false;
        break;
      case Step::Op::leaf:
        if (!holds(*s.guard, s.object)) return false;
        break;
      case Step::Op::tensor:
        if (!matches(*s.guard->tensor, s.object)) return false;
        break;
      case Step::Op::want:
        values[s.index] = ObjectRef::borrow(s.object);
        break;
      case Step::Op::visit:
        if (!walk.read_and_visit(*s.node, s.object ? s.object : function)) return false;
        break;
    }
  }
  return true;
}

// The object of then, or another one at its address of which the same is true.
bool GuardTree::confirms(Node& c, PyObject* value) {
  if (!value || value != c.recorded) { failed_ = &c; return false; }
  c.last = value;
  if (c.exact_type && Py_TYPE(value) != c.exact_type) return false;
  for (const Guard* g : c.leaves)
    if (!holds(*g, value)) return false;
  for (const auto& item : c.children) {
    if (item->kind != SourceKind::tuple_item || item->restless_value || item->owned) continue;
    if (!PyTuple_Check(value) || item->index >= PyTuple_GET_SIZE(value) || !confirms(*item, PyTuple_GET_ITEM(value, item->index))) return false;
  }
  return true;
}

// A dictionary or type that was written to: what matters of it may be as it was (a script's globals change at every turn of its loop).
bool GuardTree::is_unchanged(Node& n, PyObject* container) {
  for (const Guard* g : n.leaves)
    if (!depends_on_identity_alone(*g) && !holds(*g, container)) return false;
  bool all = true;
  for (const auto& c : n.children) {
    if (!Walk::is_versioned(c->kind)) continue;
    if (c->restless_value) { all = false; continue; }   // a step of its own looks at it
    bool owned = false;
    PyObject* value = read_step(c->kind, c->key, c->index, container, FrameView{}, owned);   // these kinds do not read the frame
    if (!confirms(*c, value)) return false;
  }
  const uint64_t version = Walk::version_of(container);
  if (!version) return false;
  n.container = all ? container : nullptr;   // a walk must not take for granted what was not looked at here
  n.version = version;
  return true;
}

void GuardTree::record_steps() {
  steps_.clear();
  if (recordings_++ >= kMostRecordings) return;   // what it looks at changes too much
  StepWriter r{steps_};
  for (const auto& c : root_->children) r.child(*c, nullptr, false, false);
  steps_.shrink_to_fit();
}

GuardTree::GuardTree(std::vector<Guard> guards, const GlobalState& state, const std::vector<const Source*>& wanted)
    : guards_(std::move(guards)), state_(state), root_(std::make_unique<Node>()), wanted_count_(wanted.size()) {
  value_count_ = wanted.size();
  for (size_t i = 0; i < wanted.size(); ++i) node_of(wanted[i])->wanted.push_back(static_cast<int32_t>(i));
  for (const Guard& g : guards_) {
    Node* n = node_of(g.source);
    if (g.kind == GuardKind::exists) continue;   // a node is read: that is it
    if (!is_relation(g.kind)) {
      if (std::none_of(n->leaves.begin(), n->leaves.end(), [&](const Guard* other) { return same_guard(g, *other); })) n->leaves.push_back(&g);
      continue;
    }
    // What a relation compares is handed out like an input, so that it is read once.
    Relation r{{&g}, {}};
    const auto want = [&](const Source* s) {
      Node* node = node_of(s);
      if (node->wanted.empty()) node->wanted.push_back(static_cast<int32_t>(value_count_++));
      r.values.push_back(node->wanted.front());
    };
    want(g.source);
    if (g.other) want(g.other);
    for (const Source* s : g.others) want(s);
    const auto is_of_sizes = [](const Guard* guard) { return guard->kind == GuardKind::size_relation; };
    if (!relations_.empty() && is_of_sizes(&g) && is_of_sizes(relations_.back().guards.front()) && relations_.back().values == r.values) relations_.back().guards.push_back(&g);
    else relations_.push_back(std::move(r));
  }
  const auto finish = [](auto& self, Node& n) -> void {
    std::stable_sort(n.leaves.begin(), n.leaves.end(), [](const Guard* a, const Guard* b) { return cost(a->kind) < cost(b->kind); });
    n.stable = n.children.empty() && n.wanted.empty() && std::all_of(n.leaves.begin(), n.leaves.end(), [](const Guard* g) { return depends_on_identity_alone(*g); });
    const auto on_type = std::find_if(n.leaves.begin(), n.leaves.end(), [](const Guard* g) { return g->kind == GuardKind::type; });
    if (on_type != n.leaves.end()) {
      n.exact_type = reinterpret_cast<PyTypeObject*>((*on_type)->operand.get());
      n.leaves.erase(on_type);
    }
    for (auto& c : n.children) self(self, *c);
    n.versioned = std::any_of(n.children.begin(), n.children.end(), [](const auto& c) { return Walk::is_versioned(c->kind); }) ||
                  std::any_of(n.leaves.begin(), n.leaves.end(), [](const Guard* g) { return depends_on_version_alone(*g) && !depends_on_identity_alone(*g); });
    for (const Guard* g : n.leaves) if (!depends_on_version_alone(*g)) n.restless.push_back(g);
    for (auto& c : n.children) if (!Walk::is_versioned(c->kind) || !c->stable) n.moving.push_back(c.get());
    // Arguments before globals and closures: what changes from call to call is there.
    std::stable_sort(n.children.begin(), n.children.end(), [](const auto& a, const auto& b) { return (a->kind == SourceKind::local) > (b->kind == SourceKind::local); });
  };
  finish(finish, *root_);
}
GuardTree::~GuardTree() = default;

GuardTree::Node* GuardTree::node_of(const Source* s) {
  if (s->id >= by_source_.size()) by_source_.resize(s->id + 1, nullptr);
  if (by_source_[s->id]) return by_source_[s->id];
  // A global is an item of a dictionary, which has a version: one node for the dictionary, below the function.
  Node* base = s->base ? node_of(s->base) : root_.get();
  auto made = std::make_unique<Node>();
  made->kind = s->kind;
  made->index = s->index;
  made->key = s->key.get();
  made->source = s;
  made->base = base;
  Node* n = made.get();
  if (s->kind == SourceKind::global) {
    auto found = std::find_if(root_->children.begin(), root_->children.end(), [](const auto& c) { return c->kind == SourceKind::function_globals && c->base == nullptr; });
    if (found == root_->children.end()) {
      auto globals = std::make_unique<Node>();
      globals->kind = SourceKind::function_globals;
      root_->children.push_back(std::move(globals));
      found = std::prev(root_->children.end());
    }
    made->kind = SourceKind::dict_item;
    (*found)->children.push_back(std::move(made));
  } else {
    base->children.push_back(std::move(made));
  }
  by_source_[s->id] = n;
  return n;
}

bool GuardTree::check(const FrameView& frame, const GlobalState& now, std::vector<ObjectRef>& values) {
  if (!(state_ == now)) return false;
  values.clear();
  values.resize(value_count_);
  if (steps_.empty() || !run_steps(frame, values)) {
    Node* other = steps_.empty() ? nullptr : failed_;
    Walk walk{frame, values};
    if (!walk.visit_value(*root_, reinterpret_cast<PyObject*>(frame.function))) return false;
    if (other) other->restless_value = true;
    if (++walks_ > 1) record_steps();   // one success may be the only one
  }
  for (const Relation& r : relations_)
    if (!relations_hold(r.guards, values, r.values)) return false;
  values.resize(wanted_count_);
  return true;
}

Mismatch GuardTree::explain(const FrameView& frame, const GlobalState& now) const {
  Mismatch m;
  if (!(state_ == now)) { m.text = state_.difference(now); return m; }
  for (const Guard& g : guards_) {
    int dim = -1;
    if (is_relation(g.kind)) {
      std::vector<ObjectRef> values{read_source(*g.source, frame)};
      if (g.other) values.push_back(read_source(*g.other, frame));
      for (const Source* s : g.others) values.push_back(read_source(*s, frame));
      std::vector<int32_t> all(values.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
      if (relations_hold({&g}, values, all)) continue;
      m.text = "`" + g.text() + "` does not hold";
    } else {
      ObjectRef value = read_source(*g.source, frame);
      if (value && holds(g, value.get())) continue;
      m.text = value ? explain_guard(g, value.get(), &dim) : "`" + g.source->shown() + "` does not exist";
    }
    if (!g.place.file.empty()) {
      const size_t slash = g.place.file.rfind('/');
      m.text += " (" + g.place.file.substr(slash == std::string::npos ? 0 : slash + 1) + ":" + std::to_string(g.place.line) + ")";
    }
    m.guard = &g;
    m.dim = dim;
    return m;
  }
  return m;
}

std::vector<GuardTree::ChangedSize> GuardTree::changed_sizes(const FrameView& frame) const {
  std::vector<ChangedSize> out;
  for (const Guard& g : guards_) {
    const bool is_integer = g.kind == GuardKind::const_eq && (PyLong_CheckExact(g.operand.get()) || PyFloat_CheckExact(g.operand.get()));
    const bool is_tuple = g.kind == GuardKind::const_eq && PyTuple_CheckExact(g.operand.get());
    if (!is_integer && !is_tuple && g.kind != GuardKind::tensor) continue;
    const ObjectRef value = read_source(*g.source, frame);
    if (!value) continue;
    if (is_integer) {
      if (Py_TYPE(value.get()) == Py_TYPE(g.operand.get()) && !holds(g, value.get())) out.push_back({g.source, -1, PyFloat_CheckExact(value.get()) != 0});
      continue;
    }
    if (is_tuple) {
      PyObject* was = g.operand.get();
      if (!PyTuple_CheckExact(value.get()) || PyTuple_GET_SIZE(value.get()) != PyTuple_GET_SIZE(was)) continue;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(was); ++i) {
        PyObject *a = PyTuple_GET_ITEM(was, i), *b = PyTuple_GET_ITEM(value.get(), i);
        if (!PyFloat_CheckExact(a) || !PyFloat_CheckExact(b) || PyFloat_AS_DOUBLE(a) == PyFloat_AS_DOUBLE(b)) continue;
        out.push_back({g.source, -1, true, "[" + std::to_string(i) + "]"});
      }
      continue;
    }
    if (!is_tensor(value.get())) continue;
    const at::IntArrayRef is = unwrap_tensor(value.get()).sizes();
    if (is.size() != g.tensor->sizes.size()) continue;
    for (size_t i = 0; i < is.size(); ++i)
      if (g.tensor->sizes[i] != TensorSpec::kAny && g.tensor->sizes[i] != is[i]) out.push_back({g.source, static_cast<int>(i)});
  }
  return out;
}

std::string GuardTree::text() const {
  std::string out;
  for (const Guard& g : guards_) {
    out += g.text();
    if (!g.place.file.empty()) out += "    # " + g.place.file + ":" + std::to_string(g.place.line);
    out += "\n";
  }
  return out;
}

}  // namespace cutaway::guards
