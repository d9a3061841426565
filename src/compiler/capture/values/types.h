// What kind of value an object of a type is, and the few types of Python's library and of torch that the protocols know by name.
#pragma once
#include <Python.h>

#include <cstdint>
#include <string>

#include "compiler/capture/values/value.h"

namespace cutaway::capture {

/// Types and functions looked up once a process. Borrowed for ever.
struct KnownTypes {
  PyTypeObject *tensor, *parameter, *buffer, *module, *size, *dtype, *device, *layout, *memory_format, *generator_state;
  PyTypeObject *enum_type, *abc_meta, *ordered_dict, *defaultdict, *deque, *partial, *method_descriptor, *wrapper_descriptor, *method_wrapper,
      *classmethod_descriptor, *getset_descriptor, *member_descriptor, *mappingproxy, *list_iterator, *tuple_iterator, *weakref, *weak_proxy, *weak_callable_proxy, *simple_namespace,
      *builtin_function, *lru_cache, *pattern, *match, *context_var, *context_token, *local_of_thread, *exception_group, *zip, *enumerate, *map, *filter, *reversed, *cached_property,
      *generator, *generic_alias, *typing_alias, *union_type, *dict_keys, *dict_values, *dict_items, *parameter_meta, *logger, *autograd_function_meta,
      *torch_function_mode, *op_overload, *op_overload_packet, *finfo, *iinfo, *script_function;
  PyObject *module_getattr, *module_setattr, *object_getattribute, *object_setattr, *object_new, *object_init, *function_apply;
};
const KnownTypes& known();

/// How values of the type are modelled; Kind::opaque when they are not.
Kind kind_of_type(PyTypeObject* t, PyObject* example);
/// False for a class that is being made right now: the mro() of its metaclass may see it before it has one.
inline bool is_ready(PyTypeObject* t) { return t->tp_mro && (t->tp_flags & Py_TPFLAGS_READY); }
/// Identity matters: two ways to the same object must give the same value.
bool has_identity(Kind k);
bool is_enum(PyTypeObject* t);
/// What hash() makes of the number that a __hash__ returns.
Py_hash_t hash_of_number(PyObject* number);
/// Derived from int, float or str, with operators of its own: an object that has a plain number or text besides its attributes.
bool is_number_class(PyTypeObject* t);
/// As some of Python's errors name a class: "outer.<locals>.Inner".
std::string qualified_name(PyTypeObject* t);
inline bool is_user_class(PyTypeObject* t) { return t && (t->tp_flags & Py_TPFLAGS_HEAPTYPE); }
/// Not a function that the program has put in the place of one.
bool is_own_of_torch(PyObject* o);
inline bool is_data_descriptor(PyObject* o) { return Py_TYPE(o)->tp_descr_set != nullptr; }
/// What a module has under a dotted path, looked up anew each time and never freed; null without an exception where there is no such thing.
PyObject* find_member(const char* module, const char* path);
/// What the package _polyfills names for C++. Borrowed for ever; an exception where it has no such name.
PyObject* polyfill_named(const char* name);
/// The name of a module, an object or null, is the package _polyfills or one in it.
bool is_polyfill_module(PyObject* name);
/// The global names of `weakref`, or of a module that it is made of. Null: no.
bool makes_weak_references(PyObject* globals);
/// A weak reference, or a class, function or instance of those modules. `object` may be null: then the trace made it.
bool is_of_weak_references(PyObject* object, PyTypeObject* type);
/// What the module _polyfills.endings defines, and its names.
PyObject* ending_named(const char* name);
PyObject* ending_globals();
/// A function of the module operator. Borrowed for ever.
PyObject* operator_function(const char* name);
/// The type's attribute lookup is the ordinary one, so that it can be done by hand.
bool has_generic_getattr(PyTypeObject* t);

/// numpy.float64 and its like: immutable, computed with by numpy itself.
bool is_numpy_number(PyTypeObject* t);
bool is_numpy_dtype(PyTypeObject* t);
/// Python's number of the same value: new reference.
PyObject* number_of_numpy(PyObject* o);
/// A class derived from Tensor whose instances are tensors like others but for __torch_function__: nothing below it, nothing computed by special methods of its own.
bool is_plain_tensor_subclass(PyTypeObject* t);
/// A class of the program's with __torch_dispatch__: its instances may be shells around other tensors (tensor_shells.cc).
bool is_shell_class(PyTypeObject* t);
/// torch.nn.UninitializedParameter and its like: tensors without a shape.
bool is_uninitialized(PyTypeObject* t);
/// Calls of torch with such a tensor are its class's to answer.
bool overrides_torch_functions(PyTypeObject* t);

}  // namespace cutaway::capture
