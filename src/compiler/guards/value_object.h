// Values of torch's dispatcher <-> Python objects, for whoever runs a graph or an operator from Python.
#pragma once
#include <Python.h>

#include <ATen/core/ivalue.h>

#include "compiler/bytecode/object_ref.h"

namespace cutaway::guards {

/// A Python value that an operator may take or return: tensor, number, text, dtype, device, None, lists and tuples of them. False with a Python
/// exception set for anything else.
bool to_ivalue(PyObject*, c10::IValue& out);
/// Lists become Python lists, tuples tuples; undefined tensors become None. Null with a Python exception set for what Python has no form of.
bytecode::ObjectRef from_ivalue(const c10::IValue&);

}  // namespace cutaway::guards
