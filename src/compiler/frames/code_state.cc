#include "compiler/frames/code_state.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/guards/tensor_object.h"

namespace cutaway::frames {
namespace {

std::unordered_set<CodeState*>& all_states() {
  static auto* states = new std::unordered_set<CodeState*>;   // code objects die late, after static destructors
  return *states;
}
}  // namespace

CodeState& state_of(PyCodeObject* code) {
  if (CodeSlot* slot = get_code_slot(code)) return *static_cast<CodeState*>(slot);
  auto* made = new CodeState;
  set_code_slot(code, made);
  all_states().insert(made);
  return *made;
}

CodeState::~CodeState() {
  all_states().erase(this);
  for (auto& e : entries) { e->life.reset(); e->users.reset(); }   // one that is running outlives the state
}

namespace {
// The names of a module, or what a class or text was run in.
bool is_namespace(PyObject* o) { return PyDict_Check(o) && PyDict_GetItemString(o, "__builtins__"); }
// It may lead to anything that the program has.
bool keeps_alive(const Held& h) {
  PyObject* o = h.get();
  return o && !h.is_weak() && PyObject_IS_GC(o) && PyObject_GC_IsTracked(o) && !PyModule_Check(o) && !PyType_Check(o) && !PyCFunction_Check(o) && !is_namespace(o) &&
         !guards::is_tensor(o);
}
}  // namespace

void let_go(CodeState& state, Entry& entry) {
  const auto end = [&state, &entry] {
    const auto found = std::ranges::find_if(state.entries, [&](const auto& e) { return e.get() == &entry; });
    if (found == state.entries.end()) return;
    const std::shared_ptr<Entry> dropped = std::move(*found);   // freed when the list is whole again
    state.entries.erase(found);
  };
  std::vector<Held*> all;
  for (size_t i = 0; i < entry.plan.sources->size(); ++i) all.push_back(&entry.plan.sources->key_of(i));
  for (Recipe& r : entry.plan.recipes) all.push_back(&r.object);
  for (guards::Guard& g : entry.plan.guards) {
    using enum guards::GuardKind;
    if (g.kind == type || g.kind == id || g.kind == code || g.kind == type_version || g.kind == tensor) all.push_back(&g.operand);
  }
  entry.life = std::make_unique<guards::Lifetime>(guards::Lifetime::Ends::with_first, end);
  entry.life->let_go(all);
  if (!entry.plan.callables.empty() || std::ranges::any_of(all, [](const Held* h) { return keeps_alive(*h); }))
    entry.users = std::make_unique<guards::Lifetime>(guards::Lifetime::Ends::with_last, end);
}

void forget_all_entries() {
  std::vector<std::shared_ptr<Entry>> dropped;   // freed last: freeing may free code objects, and with them states
  for (CodeState* s : all_states()) {
    for (auto& e : s->entries) dropped.push_back(std::move(e));
    s->entries.clear();
    s->skipped = s->limit_said = s->error_said = s->doubts_errors = false;
    s->dynamic.clear();
  }
}

}  // namespace cutaway::frames
