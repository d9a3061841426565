// A FailureSignature field by field, and as JSON: whoever writes or reads one goes by this list.
#pragma once
#include <string>

#include "core/base/json.h"
#include "core/bundle/bundle.h"

namespace cutaway::bundle {

/// Calls f(name, text) for every field, in the order of the formats.
template <class Signature, class F> void for_each_field(Signature& s, F&& f) {
  f("kind", s.kind);
  f("stage", s.stage);
  f("type", s.type);
  f("op", s.op);
  f("signal", s.signal);
  f("message", s.message);
  f("user_frame", s.user_frame);
}
/// An object with every field; what is empty is "".
base::Json signature_json(const FailureSignature&);
/// What our own processes wrote: a field that is absent, or no text, is empty.
FailureSignature signature_from(const base::Json&);

}  // namespace cutaway::bundle
