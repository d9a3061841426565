#include "diagnosis/oracle/signature.h"

#include <doctest/doctest.h>

#include "diagnosis/oracle/mask.h"

namespace signature_test {

using namespace cutaway;
using oracle::mask_line;
using oracle::normalise_message;

namespace {

bool same_message(std::string_view a, std::string_view b) { return normalise_message(a) == normalise_message(b); }

// The form of torch 2.13's messages; numbers, names and paths as two candidates of one reduction would show them.
constexpr const char* kLowering =
    "LoweringException: AssertionError: cannot lower this\n  target: aten.relu.default\n  args[0]: TensorBox(StorageBox(\n    ComputedBuffer(name='buf7', layout=FixedLayout('cpu', "
    "torch.float32, size=[2, 64], stride=[64, 1])\n  ))\n\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace\n";
constexpr const char* kLoweringSmaller =
    "LoweringException: AssertionError: cannot lower this\n  target: aten.relu.default\n  args[0]: TensorBox(StorageBox(\n    InputBuffer(name='arg0_1', layout=FixedLayout('cpu', "
    "torch.float32, size=[1, 1], stride=[1, 1])\n  ))\n";
constexpr const char* kLoweringOther = "LoweringException: AssertionError: cannot lower this\n  target: aten.tanh.default\n  args[0]: TensorBox(StorageBox(\n";

std::string cpp_error(std::string_view file, std::string_view line, std::string_view complaint) {
  return "C++ compile error\n\nCommand:\ng++ " + std::string(file) + " -D TORCH_INDUCTOR_CPP_WRAPPER -O3 -o /tmp/x/a.so\n\nOutput:\n" + std::string(file) + ": In function 'void kernel(const float*, float*)':\n" +
         std::string(file) + ":" + std::string(line) + ": error: " + std::string(complaint) + "\n   16 |  compile error!;\n";
}

}  // namespace

TEST_CASE("a line is masked by the form of its words") {
  struct Row { const char* line; const char* masked; };
  const Row rows[] = {
      {"mat1 and mat2 shapes cannot be multiplied (2x64 and 32x32)", "mat and mat shapes cannot be multiplied (N and N)"},
      {"expected size [2, 64] but got [4, 1]", "expected size [N] but got [N]"},
      {"shape '[-1, 8]' is invalid for input of size 30", "shape '[N]' is invalid for input of size N"},
      {"torch.Size([2, 3]) vs torch.Size([])", "torch.Size(N) vs torch.Size(N)"},
      {"tensor([[1., 2.], [3.5e-3, -4.]])", "tensor(N)"},
      {"sizes (4*s0, s1 + 1)", "sizes (N)"},
      {"name 'buf12' is not defined", "name 'buf' is not defined"},
      {"node relu_3 after relu and arg0_1", "node relu after relu and arg"},
      {"expected torch.float32, got bf16 and float64", "expected torch.float32, got bf16 and float64"},
      {"aten.log2.default and aten::atan2 and log2_5", "aten.log2.default and aten::atan2 and log"},
      {"in cpp_fused_add_relu_0 at 0x7f3a12", "in KERNEL at ADDR"},
      {"triton_poi_fused_sin_1 failed", "KERNEL failed"},
      {"/tmp/torchinductor_me/ab/cabc.cpp:12:5: bad", "PATH:N:N: bad"},
      {"value %v12.1 has no type", "value %V has no type"},
      {"cannot open cq3lmgzv2krwd5vlfxa3xdkvt3wv5v6bxq7c2h2vw3yz4y2lpcaf here", "cannot open HASH here"},
      {"call f() with  two\tspaces ", "call f() with two spaces"},
      {"and/or is no path, nor is 1/2", "and/or is no path, nor is N/N"},
      {"max_pool2d and conv3d keep their names", "max_pool2d and conv3d keep their names"},
      {"", ""},
  };
  for (const Row& r : rows) CHECK(mask_line(r.line) == r.masked);
}

TEST_CASE("one bug at two sizes has one message, two bugs have two") {
  CHECK(same_message(kLowering, kLoweringSmaller));
  CHECK_FALSE(same_message(kLowering, kLoweringOther));   // the operator being lowered counts
  CHECK(same_message(cpp_error("/tmp/t/aa/caa.cpp", "12:9", "'compile' was not declared in this scope"), cpp_error("/tmp/u/bb/cbb.cpp", "40:3", "'compile' was not declared in this scope")));
  CHECK_FALSE(same_message(cpp_error("/tmp/t/aa/caa.cpp", "12:9", "'compile' was not declared in this scope"), cpp_error("/tmp/t/aa/caa.cpp", "12:9", "expected ';' before 'auto'")));
  CHECK(same_message("The size of tensor a (3) must match the size of tensor b (64) at non-singleton dimension 1", "The size of tensor a (2) must match the size of tensor b (5) at non-singleton dimension 0"));
  CHECK_FALSE(same_message("fault: cannot lower aten.relu", "fault: cannot lower aten.tanh"));
  CHECK_FALSE(same_message("expected scalar type Float but found Double", "expected scalar type Float but found Half"));
}

TEST_CASE("a message is cut to one line at a whole character") {
  CHECK(normalise_message("\n\n  hello \n more") == "hello more");   // a bare header takes the line after it
  CHECK(normalise_message("something went quite wrong here\nadvice") == "something went quite wrong here");
  std::string long_text;
  while (long_text.size() < 1000) long_text += "\xC3\xA4";
  const std::string cut = normalise_message(long_text);
  CHECK(cut.size() <= 400);
  CHECK(cut.size() % 2 == 0);
  CHECK(normalise_message("").empty());
  CHECK(normalise_message(" \n\t").empty());
}

TEST_CASE("the operator that a message names") {
  CHECK(oracle::operator_in(kLowering) == "aten.relu");
  CHECK(oracle::operator_in("could not run 'aten::addmm.out' with arguments") == "aten.addmm.out");
  CHECK(oracle::operator_in("failed on torch.ops.aten.add.Tensor(x)") == "aten.add.Tensor");
  CHECK(oracle::operator_in("nothing of the sort").empty());
}

TEST_CASE("a message is the same in Python's words and in those of C++") {
  const auto message = [](const std::string& type) { return oracle::normalise_message("modified by an inplace operation: [" + type + " [5, 8]] is at version 2"); };
  CHECK(message("CPUFloatType") == message("torch.FloatTensor"));
  CHECK(message("CPUFloatType") == message("Variable[CPUFloatType]"));
  CHECK(message("CUDAHalfType") == message("torch.cuda.HalfTensor"));
  CHECK(message("SparseCPULongType") == message("torch.sparse.LongTensor"));
  CHECK(message("CPUFloatType") != message("CPUDoubleType"));
  CHECK(oracle::normalise_message("expected [CPUFloatType]") == oracle::normalise_message("expected [torch.FloatTensor]"));
}

TEST_CASE("the same failure: kind, type, signal and message") {
  bundle::FailureSignature wanted{"exception", "backend", "InductorError", "aten.relu", "", "m", ""};
  auto other = wanted;
  CHECK(oracle::is_same_failure(wanted, other, "m", ""));
  other.type = "ValueError";
  CHECK_FALSE(oracle::is_same_failure(wanted, other, "m", ""));
  other = wanted;
  other.kind = "crash";
  CHECK_FALSE(oracle::is_same_failure(wanted, other, "m", "m"));   // --match does not make a crash of an exception
  other = wanted;
  other.message = "another";
  CHECK_FALSE(oracle::is_same_failure(wanted, other, "whole text 42", ""));
  CHECK(oracle::is_same_failure(wanted, other, "whole text 42", "text \\d+"));
}

TEST_CASE("signatures: wrong gradients of a whole are wrong values of its part, and not the other way round") {
  const auto off = [](const char* type) { return bundle::FailureSignature{"accuracy", "backend", type, "", "", "", ""}; };
  CHECK(oracle::is_same_failure(off("gradients of float32"), off("values of float32"), "", ""));
  CHECK(oracle::is_same_failure(off("gradients of float32"), off("gradients of float32"), "", ""));
  CHECK_FALSE(oracle::is_same_failure(off("values of float32"), off("gradients of float32"), "", ""));
  CHECK_FALSE(oracle::is_same_failure(off("gradients of float32"), off("values of bfloat16"), "", ""));
  CHECK_FALSE(oracle::is_same_failure(off("gradients of float32"), off("strides"), "", ""));
}

}  // namespace signature_test
