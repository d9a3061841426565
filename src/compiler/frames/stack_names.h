// What a person calls the values that a resume function gets in ".stack": guards on them are shown to the user, who wrote a variable or an expression.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/bytecode/code.h"

namespace cutaway::frames {

struct StackName {
  std::string text;           ///< `x`, `self.weight`, "the value under construction at line 12"
  bool is_variable = false;   ///< the text is an expression of the user's
};
/// The lowest `count` entries of the stack before instruction `index`, bottom first. `height`: how many entries there are.
std::vector<StackName> names_on_stack(const bytecode::Code&, int index, int height, int count);
/// The same in a sentence about another function than the captured one: `helper's x`.
std::string name_in(const StackName&, const std::string& function);
/// Of the items of ".stack" of a made code, in their order; empty for other code.
const std::vector<StackName>& stack_names_of(PyCodeObject* made);
/// Why the graph ended after which this code goes on; null for code that was not made.
std::shared_ptr<const struct BreakReason> left_by(PyCodeObject*);

}  // namespace cutaway::frames
