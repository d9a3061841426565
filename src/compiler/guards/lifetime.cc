#include "compiler/guards/lifetime.h"

namespace cutaway::guards {

struct Lifetime::State {
  Ends ends = Ends::with_first;
  size_t alive = 0;
  std::function<void()> at_end;
};

namespace {
constexpr const char* kName = "cutaway.lifetime";
// Static types, modules and what hangs on them live as long as the process.
bool may_die(PyObject* o) {
  if (PyType_Check(o)) return PyType_HasFeature(reinterpret_cast<PyTypeObject*>(o), Py_TPFLAGS_HEAPTYPE);
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) && !PyCFunction_Check(o);
}
}  // namespace

Lifetime::Lifetime(Ends ends, std::function<void()> at_end) : state_(std::make_shared<State>(State{ends, 0, std::move(at_end)})) {}
Lifetime::~Lifetime() {
  if (state_) state_->at_end = nullptr;
}

ObjectRef Lifetime::weak_reference(PyObject* o) {
  static PyMethodDef method = {"object_is_gone", [](PyObject* self, PyObject* reference) -> PyObject* {
    const ObjectRef keep = ObjectRef::borrow(reference), keep_self = ObjectRef::borrow(self);   // the end may free both
    const std::shared_ptr<State> state = *static_cast<std::shared_ptr<State>*>(PyCapsule_GetPointer(self, kName));
    if (--state->alive == 0 || state->ends == Ends::with_first)
      if (const auto end = std::exchange(state->at_end, nullptr)) end();
    Py_RETURN_NONE;
  }, METH_O, nullptr};
  if (!callback_) {
    const ObjectRef capsule = ObjectRef::steal(PyCapsule_New(new std::shared_ptr<State>(state_), kName, [](PyObject* c) { delete static_cast<std::shared_ptr<State>*>(PyCapsule_GetPointer(c, kName)); }));
    callback_ = ObjectRef::steal(capsule ? PyCFunction_New(&method, capsule.get()) : nullptr);
  }
  ObjectRef& weak = weak_[o];
  if (weak && PyWeakref_GET_OBJECT(weak.get()) == o) return weak;
  weak = ObjectRef::steal(callback_ ? PyWeakref_NewRef(o, callback_.get()) : nullptr);
  if (weak) ++state_->alive;
  else PyErr_Clear();
  return weak;
}

void Lifetime::depend_on(PyObject* o) {
  if (const auto found = weak_.find(o); found != weak_.end() && PyWeakref_GET_OBJECT(found->second.get()) == o) return;
  if (weak_.size() > 2 * state_->alive + 16) std::erase_if(weak_, [](const auto& row) { return PyWeakref_GET_OBJECT(row.second.get()) == Py_None; });
  if (may_die(o)) weak_reference(o);
}

void Lifetime::let_go(const std::vector<Held*>& all) {
  std::unordered_map<PyObject*, Py_ssize_t> owned;
  for (const Held* h : all) if (h->get() && may_die(h->get())) ++owned[h->get()];
  for (Held* h : all) {
    PyObject* o = h->get();
    const auto found = o ? owned.find(o) : owned.end();
    if (found == owned.end() || Py_REFCNT(o) <= found->second) continue;
    --found->second;
    if (ObjectRef weak = weak_reference(o)) h->let_go(std::move(weak));
  }
}

}  // namespace cutaway::guards
