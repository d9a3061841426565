#include "compiler/frames/code_state.h"

#include <unordered_set>

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

CodeState::~CodeState() { all_states().erase(this); }

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
