// A compiler outside of torch and of Python, to be looked at with Cutaway: reads a bundle, computes its outputs, writes them down.
//
//   c++ -std=c++20 -O2 -I src examples/command_backend.cc -o mycompiler -L DIR -lcutaway_core -Wl,-rpath,DIR     (DIR: where the package is installed)
//   cutaway minify BUNDLE --backend 'command:./mycompiler {bundle}' --accuracy --trust
//
// It links libcutaway_core alone, which reads graphs and bundles and knows no libtorch; docs/formats/command_backend.md is the protocol, for
// programs that would rather read the files themselves. MYCOMPILER_BUG=aten.mm makes that operator wrong, MYCOMPILER_ABORT=aten.mm deadly.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>

#include "core/base/json.h"
#include "core/bundle/bundle.h"

using namespace cutaway;

namespace {

struct Array { std::vector<int64_t> sizes; std::vector<float> elements; };
using Values = std::map<ir::ValueId, Array>;

bool is_named(const char* variable, const std::string& op) {
  const char* value = std::getenv(variable);
  return value && op == value;
}

/// The elements of a stored tensor, row by row, whatever its strides are.
base::Result<Array> read_input(const bundle::InputRef& input, const store::Store& blobs) {
  const bundle::TensorRecord& t = input.tensor;
  if (input.kind != bundle::InputRef::Kind::data || t.dtype != ir::DType::f32) return base::Error{.what = "only f32 tensors with data can be read"};
  CUTAWAY_TRY_ASSIGN(const store::Blob blob, blobs.get(t.storage, t.storage_bytes));
  Array out{t.sizes, {}};
  std::vector<int64_t> index(t.sizes.size(), 0);
  const int64_t count = std::accumulate(t.sizes.begin(), t.sizes.end(), int64_t{1}, std::multiplies<>());
  for (int64_t n = 0; n < count; ++n) {
    int64_t at = t.storage_offset;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides[d];
    float element;
    std::memcpy(&element, static_cast<const char*>(blob.data()) + static_cast<size_t>(at) * sizeof element, sizeof element);
    out.elements.push_back(element);
    for (size_t d = index.size(); d-- > 0 && ++index[d] == t.sizes[d];) index[d] = 0;
  }
  return out;
}

const std::map<std::string, float (*)(float)> kUnary = {
    {"aten.relu", [](float a) { return a > 0 ? a : 0; }}, {"aten.tanh", [](float a) { return std::tanh(a); }}, {"aten.sin", [](float a) { return std::sin(a); }}, {"aten.neg", [](float a) { return -a; }}};
const std::map<std::string, float (*)(float, float)> kBinary = {{"aten.add.Tensor", [](float a, float b) { return a + b; }}, {"aten.mul.Tensor", [](float a, float b) { return a * b; }}};

base::Result<Array> compute(const ir::Node& node, const Values& values) {
  std::vector<const Array*> operands;
  for (const ir::Argument& a : node.args)
    if (const auto* value = a.as<ir::ValueRef>()) operands.push_back(&values.at(value->id));
  const bool is_plain = operands.size() == node.args.size() && node.kwargs.empty() && node.results.size() == 1;
  Array out;
  if (const auto f = kUnary.find(node.target); f != kUnary.end() && is_plain) {
    out = *operands[0];
    for (float& e : out.elements) e = f->second(e);
  } else if (const auto g = kBinary.find(node.target); g != kBinary.end() && is_plain && operands[0]->sizes == operands[1]->sizes) {
    out = *operands[0];
    for (size_t i = 0; i < out.elements.size(); ++i) out.elements[i] = g->second(out.elements[i], operands[1]->elements[i]);
  } else if (node.target == "aten.mm" && is_plain) {
    const int64_t rows = operands[0]->sizes[0], inner = operands[0]->sizes[1], columns = operands[1]->sizes[1];
    out.sizes = {rows, columns};
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += double{operands[0]->elements[static_cast<size_t>(r * inner + k)]} * operands[1]->elements[static_cast<size_t>(k * columns + c)];
        out.elements.push_back(static_cast<float>(sum));
      }
  } else {
    return base::Error{.what = "cannot lower " + node.target};
  }
  if (is_named("MYCOMPILER_ABORT", node.target)) std::abort();
  if (is_named("MYCOMPILER_BUG", node.target))
    for (float& e : out.elements) e += 0.5f;
  return out;
}

base::Status compile_and_run(const std::filesystem::path& path, const std::filesystem::path& output) {
  CUTAWAY_TRY_ASSIGN(const bundle::Bundle b, bundle::read_bundle(path));   // reads and checks; executes nothing
  CUTAWAY_TRY_ASSIGN(const store::Store blobs, bundle::open_store(b));
  Values values;
  for (size_t i = 0; i < b.graph.inputs.size(); ++i) {
    CUTAWAY_TRY_ASSIGN(values[b.graph.inputs[i].value], read_input(b.manifest.inputs[i], blobs));
  }
  for (const ir::Node& node : b.graph.body.nodes) {
    CUTAWAY_TRY_ASSIGN(values[node.results.front()], compute(node, values));
  }
  base::Json::Array outputs;
  for (const ir::Argument& a : b.graph.body.outputs) {
    const auto* value = a.as<ir::ValueRef>();
    if (!value) return base::Error{.what = "only tensors can be returned"};
    const Array& array = values.at(value->id);
    const std::string file = std::to_string(outputs.size()) + ".bin";
    std::ofstream(output / file, std::ios::binary).write(reinterpret_cast<const char*>(array.elements.data()), static_cast<std::streamsize>(array.elements.size() * sizeof(float)));
    base::Json::Array sizes(array.sizes.begin(), array.sizes.end());
    outputs.push_back(base::Json::Object{{"dtype", "f32"}, {"sizes", std::move(sizes)}, {"file", file}});
  }
  std::ofstream(output / "outputs.json") << base::Json(base::Json::Object{{"version", 1}, {"outputs", std::move(outputs)}}).text();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const char* output = std::getenv("CUTAWAY_OUTPUT");
  if (argc != 2 || !output) {
    std::cerr << "usage: command:" << argv[0] << " {bundle}, as a backend of cutaway\n";
    return 2;
  }
  const base::Status done = compile_and_run(argv[1], output);
  if (!done.ok()) std::cerr << done.error().text() << "\n";
  return done.ok() ? 0 : 1;
}
