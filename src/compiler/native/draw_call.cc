// Random numbers of torch's default CPU generator for kernels: its state is taken, moved on by our loops, and given back.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <cstring>
#include <mutex>

#include "compiler/kernels/random.h"
#include "compiler/native/kernel_call.h"

namespace cutaway::native {
namespace {

void fill(at::Generator generator, const codegen::Draw& d, void* into) {
  std::lock_guard lock(generator.mutex());
  auto* own = at::check_generator<at::CPUGeneratorImpl>(generator);
  at::mt19937 engine = own->engine();
  at::mt19937_data_pod data = engine.data();
  kernels::Mersenne m;
  static_assert(sizeof m.state == sizeof data.state_);
  std::memcpy(m.state, data.state_.data(), sizeof m.state);
  m.left = data.left_;
  m.next = data.next_;
  if (d.kind == codegen::Draw::Kind::bernoulli) {
    const bool is_bool = d.dtype == ir::DType::boolean;
    const uint64_t one = d.dtype == ir::DType::f32 ? 0x3f800000u : d.dtype == ir::DType::f64 ? 0x3ff0000000000000u : d.dtype == ir::DType::bf16 ? 0x3f80u : is_bool ? 1u : 0x3c00u;
    kernels::fill_bernoulli(m, d.p, into, d.count, static_cast<int>(ir::dtype_bytes(d.dtype)), one);
  } else if (d.dtype == ir::DType::f32) {
    kernels::fill_uniform(m, static_cast<float*>(into), d.count);
  } else {
    kernels::fill_uniform(m, static_cast<double*>(into), d.count);
  }
  std::memcpy(data.state_.data(), m.state, sizeof m.state);
  data.left_ = m.left;
  data.next_ = m.next;
  engine.set_data(data);
  own->set_engine(engine);
}

/// One kind of number: by torch and by us from the same state, with what both leave behind.
bool is_eagers(codegen::Draw::Kind kind, ir::DType dtype) {
  constexpr int64_t kCount = 1500;   // beyond two states
  codegen::Draw d;
  d.kind = kind;
  d.dtype = dtype;
  d.p = 0.3;
  d.count = kCount;
  at::Generator theirs = at::detail::createCPUGenerator(1234), ours = theirs.clone();
  const auto options = at::TensorOptions(static_cast<c10::ScalarType>(dtype));
  at::Tensor expected = at::empty({kCount}, options), got = at::empty({kCount}, options);
  if (kind == codegen::Draw::Kind::bernoulli) expected.bernoulli_(d.p, theirs);
  else expected.uniform_(0, 1, theirs);
  fill(ours, d, got.mutable_data_ptr());
  return at::equal(expected, got) && at::equal(theirs.get_state(), ours.get_state());
}

}  // namespace

bool draws_are_eagers() {
  using Kind = codegen::Draw::Kind;
  static const bool known = is_eagers(Kind::bernoulli, ir::DType::f32) && is_eagers(Kind::bernoulli, ir::DType::f64) && is_eagers(Kind::bernoulli, ir::DType::bf16) && is_eagers(Kind::bernoulli, ir::DType::f16) &&
                            is_eagers(Kind::bernoulli, ir::DType::boolean) && is_eagers(Kind::uniform, ir::DType::f32) && is_eagers(Kind::uniform, ir::DType::f64);
  return known;
}

KernelCall::Body draw_body(const codegen::Draw& draw) {
  return [draw](void* const* buffers) { fill(at::detail::getDefaultCPUGenerator(), draw, buffers[0]); };
}

}  // namespace cutaway::native
