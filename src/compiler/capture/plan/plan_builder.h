// Turns the end of a trace into a plan: recipes for what the program returns or keeps, effects on what existed before, the graph.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/capture/torch/leaves.h"
#include "compiler/capture/values/endings.h"
#include "compiler/capture/values/frame_stack.h"
#include "compiler/capture/values/owners.h"

namespace cutaway::capture {

class PlanBuilder : protected Owners {
 public:
  PlanBuilder(const Owners& owners, frames::Plan& plan) : Owners(owners), plan_(plan) {}
  /// Throws frames::Skip for a value that cannot be made again.
  frames::RecipeId recipe(Value* v);
  void add_effects();
  /// Modes that the program has entered and not left.
  void enter_contexts();
  void guard_writes();   ///< before the guards are taken
  /// The stacks and the live variables of the frames that go on.
  frames::Break break_here(frames::BreakReason reason);
  /// Before every other recipe.
  void remembered_calls();
  /// Ends the recording and compiles. False: the backend raised.
  bool compile_graph(const frames::Compile& compile);

 private:
  frames::RecipeId make(Value* v);
  frames::RecipeId constant(PyObject* o);
  frames::RecipeId globals_of(Value* v, const Function& f);   ///< refuses a function whose globals the captured code made
  frames::RecipeId globals(PyObject* dict);   ///< of a function; the captured frame's own are read from it, so that the plan does not keep them alive
  frames::RecipeId call(std::vector<frames::RecipeId> parts, PyObject* keyword_names = nullptr);
  frames::RecipeId sequence(frames::Recipe::Kind kind, const std::vector<Value*>& items);
  frames::RecipeId shell(Value* v);
  frames::RecipeId mapping(Value* v);
  frames::RecipeId instance(Value* v, frames::RecipeId base, Value* attributes);
  frames::RecipeId iterator(Value* v);
  frames::RecipeId generator(Value* v);
  frames::OpenFrame open_frame(Frame* f, Frame* callee);   ///< callee: null for the innermost
  frames::OpenFrame ending_frame(const Ending&);   ///< endings.cc
  void dict_effects(Value* v);
  bool asks_keys(Value* v);   ///< a dict or set whose keys have a hash of their own, where there are effects
  void mode_effects();
  void switch_effects();
  frames::RecipeId inference_context(const Leaves::InferenceContext&);
  [[noreturn]] void refuse(Value* v, const char* why);
  [[noreturn]] void refuse_stand_in(Value* v);

  frames::Plan& plan_;
  std::unordered_map<Value*, frames::RecipeId> made_;
  std::unordered_map<PyObject*, frames::RecipeId> fresh_;   ///< constants of the trace that each run makes anew
  std::unordered_set<Value*> open_;
  bool may_stand_in_ = false;          ///< what goes on behind a break may be what stands for an iterator of C: it lies on a stack, where no name shows its type
  std::vector<frames::Effect> late_;   ///< after all others
  std::vector<Value*> outputs_;
  std::vector<Value*> remembered_;   ///< tensors that functions with a cache have
};

}  // namespace cutaway::capture
