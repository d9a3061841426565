// What is known about one code object: its compiled entries, why it is left alone, how sizes changed, made code that goes on in it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/bytecode/resume.h"
#include "compiler/frames/python_frame.h"
#include "compiler/frames/session.h"
#include "compiler/frames/stack_names.h"
#include "compiler/guards/guard_tree.h"
#include "compiler/guards/lifetime.h"

namespace cutaway::frames {

/// A plan with its guards, and the code that a break needs.
struct Entry {
  std::shared_ptr<Session> session;
  Plan plan;                                   // before the tree: sources outlive it
  std::unique_ptr<guards::GuardTree> guards;
  std::vector<bytecode::BreakStub> stubs;      // of a break: one an open frame
  std::unique_ptr<guards::Lifetime> life;      // it goes with the first object that it needs
  std::unique_ptr<guards::Lifetime> users;     // where it owns objects of the program: it goes with the last function that it ran for; else null
};

struct CodeState final : CodeSlot {
  ~CodeState() override;
  std::vector<std::shared_ptr<Entry>> entries;   // the one that fitted last is the first
  bool is_stub = false;                          // never captured, never reported
  bool is_hidden = false;                        // no traceback shows its frames
  bool leaves_no_trace() const override { return is_hidden; }
  bool skipped = false;                          // capture said so
  BreakReason skip_reason;
  int8_t skipped_file = -1;                      // not asked yet
  bool is_builder = false;                       // skipped because it only builds an object; code of the program
  bool compiling = false;
  int64_t collectives = 0;                       // how often ranks agreed about it
  bool limit_said = false, error_said = false;
  bool doubts_errors = false;                    // capture believed that it raises, and it did not
  std::vector<DynamicSize> dynamic;              // sizes that changed between calls
  std::vector<std::pair<std::string, std::vector<int64_t>>> first_sizes;   // of tensors that the first call was given, which ran eagerly: see Stance::eager_first
  bool is_met = false;                           // that call was made
  // Made code: where it comes from.
  PyCodeObject* root = nullptr;                  // the original, which keeps this code, not the other way round; null for an original
  int prologue = 0;                              // instructions before the original ones
  int call = -1;                                 // the original's instruction that the call of the prologue stands for
  std::vector<StackName> stack_names;            // of what ".stack" holds
  std::shared_ptr<const BreakReason> left_by;    // the break after which it goes on
  // Of an original: (instruction, code that is called there or null, number of its arguments, bound and null flags) -> code.
  std::map<std::tuple<int, PyObject*, int, std::vector<bool>>, ObjectRef> resumes;
};
CodeState& state_of(PyCodeObject*);
/// The entry owns nothing more that the program has, and leaves the state when it cannot be run any more. Before its guards are made.
void let_go(CodeState&, Entry&);
/// All states, for reset(). A state leaves the list with its code object.
void forget_all_entries();

}  // namespace cutaway::frames
