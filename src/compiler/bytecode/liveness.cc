// Which slots may be read before they are written: the usual backward data flow over the instructions, handlers as further ways.
#include "compiler/bytecode/code.h"

namespace cutaway::bytecode {
namespace {

enum class Use : uint8_t { none, read, write, read_then_unbind };
Use slot_use(Op op) {
  switch (op) {
    case Op::LOAD_FAST: case Op::LOAD_FAST_CHECK: case Op::LOAD_CLOSURE: case Op::LOAD_DEREF: case Op::STORE_DEREF: case Op::DELETE_DEREF:
    case Op::LOAD_CLASSDEREF: case Op::LOAD_FROM_DICT_OR_DEREF: case Op::MAKE_CELL: return Use::read;
    case Op::STORE_FAST: return Use::write;
    case Op::DELETE_FAST: case Op::LOAD_FAST_AND_CLEAR: return Use::read_then_unbind;
    default: return Use::none;
  }
}
bool ends_the_way(Op op) {
  return op == Op::JUMP || op == Op::RETURN_VALUE || op == Op::RETURN_CONST || op == Op::RAISE_VARARGS || op == Op::RERAISE;
}

}  // namespace

std::vector<std::vector<bool>> Code::find_live() const {
  const int count = static_cast<int>(instructions_.size()), slots = slot_count();
  std::vector<std::vector<bool>> live(count + 1, std::vector<bool>(slots));
  for (bool changed = true; changed;) {
    changed = false;
    for (int n = count - 1; n >= 0; --n) {
      const Instruction& i = instructions_[n];
      std::vector<bool> now(slots);
      const auto join = [&](int from) { for (int s = 0; s < slots; ++s) if (live[from][s]) now[s] = true; };
      if (!ends_the_way(i.op)) join(n + 1);
      if (i.target >= 0) join(i.target);
      const Use use = slot_use(i.op);
      if (use == Use::write) now[i.arg] = false;
      if (use == Use::read || use == Use::read_then_unbind) now[i.arg] = true;
      if (i.handler >= 0) join(handlers_[i.handler].target);   // after the write: the instruction may raise before it
      if (now != live[n]) { live[n] = std::move(now); changed = true; }
    }
  }
  return live;
}

std::vector<bool> Code::live_before(int index) const {
  if (live_.empty()) live_ = find_live();
  std::vector<bool> live = live_[index];
  // super() without arguments reads the first argument although no instruction says so; such a function has the free variable __class__.
  for (int i = slot_count() - object()->co_nfreevars; i < slot_count(); ++i)
    if (slot_names_[i] == "__class__" && object()->co_argcount > 0) live[0] = true;
  return live;
}

}  // namespace cutaway::bytecode
