#include "compiler/codegen/program_text.h"

#include <algorithm>
#include <map>

#include "compiler/codegen/cost.h"
#include "compiler/codegen/line_marks.h"

namespace cutaway::codegen {
namespace {

std::string c_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

/// Behind the kernels. Plain C++ over four headers of C: it compiles in a moment.
constexpr const char* kMain = R"cpp(
// ---- the program: loads, runs, times, compares ----
namespace {

Value* named(const char* name) {
  for (int i = 0; i < value_count; ++i)
    if (!strcmp(values[i].name, name)) return &values[i];
  return nullptr;
}

// Numbers of a fixed generator, by dtype: where nothing was recorded.
void make_up(Value& v) {
  static unsigned long state = 0x9e3779b97f4a7c15ul;
  const auto next = [] { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; };
  const auto unit = [&] { return (double)(next() >> 11) / 9007199254740992.0 * 4 - 2; };
  unsigned char* p = (unsigned char*)v.data;
  for (long i = 0; i < v.bytes / v.size; ++i, p += v.size) {
    if (!strcmp(v.dtype, "f32")) { const float x = (float)unit(); memcpy(p, &x, 4); }
    else if (!strcmp(v.dtype, "f64")) { const double x = unit(); memcpy(p, &x, 8); }
    else if (!strcmp(v.dtype, "bf16")) { const float x = (float)unit(); memcpy(p, (const char*)&x + 2, 2); }
    else if (!strcmp(v.dtype, "f16")) { const unsigned short x = (unsigned short)(0x3800 | (next() & 0x83ff)); memcpy(p, &x, 2); }
    else if (!strcmp(v.dtype, "bool")) *p = next() & 1;
    else { const long x = (long)(next() % 10); memcpy(p, &x, v.size < 8 ? v.size : 8); }
  }
}

// A line "name dtype bytes", then the bytes.
bool load(const char* path) {
  FILE* f = fopen(path, "rb");
  if (!f) return false;
  char line[1024], name[512], dtype[32];
  long bytes = 0;
  bool ok = fgets(line, sizeof line, f) && !strcmp(line, "cutaway values 1\n");
  while (ok && fgets(line, sizeof line, f)) {
    Value* v = sscanf(line, "%511s %31s %ld", name, dtype, &bytes) == 3 ? named(name) : nullptr;
    if (!v || strcmp(v->dtype, dtype) || v->bytes != bytes) { fprintf(stderr, "%s: %s is not a value of this program\n", path, name); ok = false; break; }
    v->recorded = malloc(bytes + 64);
    ok = fread(v->recorded, 1, bytes, f) == (size_t)bytes;
  }
  fclose(f);
  if (!ok) { fprintf(stderr, "%s: cannot be read\n", path); exit(2); }
  return true;
}

double element(const Value& v, const void* data, long i) {
  const char* p = (const char*)data + i * v.size;
  if (!strcmp(v.dtype, "f32")) { float x; memcpy(&x, p, 4); return x; }
  if (!strcmp(v.dtype, "f64")) { double x; memcpy(&x, p, 8); return x; }
  if (!strcmp(v.dtype, "i64")) { long x; memcpy(&x, p, 8); return (double)x; }
  if (!strcmp(v.dtype, "i32")) { int x; memcpy(&x, p, 4); return x; }
  if (!strcmp(v.dtype, "i16")) { short x; memcpy(&x, p, 2); return x; }
  if (!strcmp(v.dtype, "i8")) return *(const signed char*)p;
  if (!strcmp(v.dtype, "bf16")) { unsigned short h; memcpy(&h, p, 2); const unsigned u = (unsigned)h << 16; float x; memcpy(&x, &u, 4); return x; }
  if (!strcmp(v.dtype, "f16")) {
    unsigned short h; memcpy(&h, p, 2);
    const int e = h >> 10 & 31, m = h & 1023;
    const double x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -x : x;
  }
  return *(const unsigned char*)p;
}

// Largest difference from what was recorded; true where every element is within the tolerance.
bool compare(const Value& v, double& worst) {
  const double tolerance = v.dtype[0] != 'f' && v.dtype[0] != 'b' ? 0 : !strcmp(v.dtype, "f32") || !strcmp(v.dtype, "f64") ? 1e-3 : 2e-2;
  bool ok = true;
  worst = 0;
  for (long i = 0; i < v.bytes / v.size; ++i) {
    const double a = element(v, v.recorded, i), b = element(v, v.data, i);
    if (a == b || (a != a && b != b)) continue;
    const double off = fabs(a - b);
    if (!(off <= worst)) worst = off;
    if (!(off <= tolerance + tolerance * fabs(a))) ok = false;
  }
  return ok;
}

double seconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : values_file;
  const bool has_record = load(path);
  for (int i = 0; i < value_count; ++i) {
    Value& v = values[i];
    v.data = aligned_alloc(64, (v.bytes + 127) / 64 * 64);
    memset(v.data, 0, v.bytes);
    if (v.is_computed) continue;
    if (v.recorded) memcpy(v.data, v.recorded, v.bytes);
    else make_up(v);
  }
  if (has_record) printf("values of %s: inputs, and results of torch's operators, which are loaded and not computed\n", path);
  else printf("no recorded values (%s): inputs are made up by a fixed generator, and nothing is compared\n", path);
  printf("%-14s %12s %9s %9s %12s   %s\n", "step", "time", "GB/s", "GFLOP/s", "difference", "computes");
  int wrong = 0, compared = 0;
  double total = 0;
  for (int number = 0; number < step_count; ++number) {
    const Step& s = all_steps[number];
    s.run();
    double best = 1e30;
    const double begin = seconds();
    for (int i = 0; i < 100 && (i < 3 || seconds() - begin < 0.02); ++i) {
      const double t = seconds();
      s.run();
      const double took = seconds() - t;
      if (took < best) best = took;
    }
    total += best;
    char difference[40] = "-";
    double most = 0;
    bool ok = true, any = false;
    for (const int* w = s.writes; *w >= 0; ++w) {
      if (!values[*w].recorded) continue;
      double worst = 0;
      any = true;
      ++compared;
      if (!compare(values[*w], worst)) { ok = false; ++wrong; }
      if (!(worst <= most)) most = worst;
    }
    if (any) snprintf(difference, sizeof difference, "%.3g%s", most, ok ? "" : " WRONG");
    printf("%-14s %9.2f us %9.1f %9.1f %12s   %s\n", s.name, best * 1e6, s.bytes / best * 1e-9, s.operations / best * 1e-9, difference, s.computes);
  }
  printf("%d steps, %.2f us\n", step_count, total * 1e6);
  if (has_record) printf(wrong ? "%d of %d values differ from those recorded\n" : "%d of %d values differ from those recorded: all agree\n", wrong, compared);
  return wrong ? 1 : 0;
}
)cpp";

/// Products are a plain loop here: slow, and nothing to install. Sums in double, so that a difference is the kernel library's.
constexpr const char* kProduct = R"cpp(
template <class T> static void product(const T* a, const T* b, const T* bias, T* c, long batch, long m, long n, long k, const long* sa, const long* sb, const long* sc) {
  for (long x = 0; x < batch; ++x)
    for (long i = 0; i < m; ++i)
      for (long j = 0; j < n; ++j) {
        double sum = bias ? bias[j] : 0;
        for (long l = 0; l < k; ++l) sum += (double)a[x * sa[0] + i * sa[1] + l * sa[2]] * b[x * sb[0] + l * sb[1] + j * sb[2]];
        c[x * sc[0] + i * sc[1] + j * sc[2]] = (T)sum;
      }
}
)cpp";

/// Convolutions likewise. w: channels, height, width, out_height, out_width, size, step, pad, dilation (a pair each).
constexpr const char* kConvolution = R"cpp(
template <class T> static void convolution(const T* weight, const T* x, const T* bias, T* out, long batch, long outputs, const long* w, const long* sx) {
  for (long b = 0; b < batch; ++b)
    for (long o = 0; o < outputs; ++o)
      for (long i = 0; i < w[3]; ++i)
        for (long j = 0; j < w[4]; ++j) {
          double sum = bias ? bias[o] : 0;
          for (long c = 0; c < w[0]; ++c)
            for (long u = 0; u < w[5]; ++u)
              for (long v = 0; v < w[6]; ++v) {
                const long y = i * w[7] - w[9] + u * w[11], z = j * w[8] - w[10] + v * w[12];
                if (y >= 0 && y < w[1] && z >= 0 && z < w[2]) sum += (double)weight[((o * w[0] + c) * w[5] + u) * w[6] + v] * x[b * sx[0] + c * sx[1] + y * sx[2] + z * sx[3]];
              }
          out[((b * outputs + o) * w[3] + i) * w[4] + j] = (T)sum;
        }
}
)cpp";

}  // namespace

std::vector<ProgramValue> values_of(const Program& program) {
  const ir::Graph& g = program.graph;
  std::vector<ProgramValue> found;
  const auto add = [&](ir::ValueId id, ProgramValue::From from) {
    const auto shape = shape_of(g.value(id).type);
    if (!shape) return;
    ProgramValue v{id, g.value(id).name, g.value(id).type.tensor.dtype, shape->sizes, shape->strides, 0, from, false};
    int64_t last = 0;
    for (size_t d = 0; d < v.sizes.size(); ++d) last += (v.sizes[d] - 1) * v.strides[d];
    if (shape->numel() > 0) v.bytes = (last + 1) * ir::dtype_bytes(v.dtype);
    found.push_back(std::move(v));
  };
  for (const ir::Input& i : g.inputs) add(i.value, ProgramValue::From::input);
  for (const ir::Node& n : g.body.nodes) {
    const bool is_call = n.kind == ir::Node::Kind::call;
    for (ir::ValueId r : n.results) add(r, !is_call || n.target.starts_with("native.c") || n.target.starts_with("native.a") ? ProgramValue::From::operators : n.target.starts_with("native.p") ? ProgramValue::From::product : ProgramValue::From::kernel);
  }
  for (const ir::Argument& a : g.body.outputs)
    ir::for_each_value(a, [&](ir::ValueId id) {
      for (ProgramValue& v : found) v.is_output = v.is_output || v.value == id;
    });
  return found;
}

std::string values_header() { return "cutaway values 1\n"; }
std::string value_header(const ProgramValue& v) { return v.name + " " + std::string(ir::dtype_name(v.dtype)) + " " + std::to_string(v.bytes) + "\n"; }

std::string complete_program(const Program& program, const ProgramTextOptions& options) {
  const std::vector<ProgramValue> values = values_of(program);
  std::map<ir::ValueId, size_t> index;
  for (size_t i = 0; i < values.size(); ++i) index[values[i].value] = i;
  std::map<std::string, const Generated*> loops;
  std::map<std::string, const Product*> products;
  for (const Generated& k : program.kernels)
    if (!program.texts[k.text].cuda) loops["native." + k.kernel.name] = &k;   // those of a card are another file's
  for (const Product& p : program.products) products["native." + p.name] = &p;
  for (const auto& [name, p] : products) loops.erase(name);   // a product's epilogue is no step of its own

  const std::string stem = options.file.substr(0, options.file.rfind('.'));
  std::string out = "// " + options.compiler;
  for (const std::string& f : options.flags)
    if (f != "-shared" && f != "-fPIC") out += " " + f;
  out += " -fopenmp " + options.file + " -o " + stem + " -lm && ./" + stem + "\n";
  out += "// What the backend native made of " + (program.graph.name.empty() ? std::string("the graph") : program.graph.name) + ". The program runs its kernels on recorded values (" + options.values_file +
         ") and compares. Edit a kernel and let\n// `cutaway run BUNDLE --backend native --code " + options.file + "` run it in place of the generated one.\n";
  out += "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\n";
  out += program.source(options.lanes);
  if (!products.empty()) out += std::string(kProduct) + "// Products: the loop above stands for the hand-written kernel that Cutaway links.\n";
  if (std::ranges::any_of(program.products, [](const Product& p) { return p.window.has_value(); })) out += kConvolution;
  out += "\nstruct Value { const char *name, *dtype; long size, bytes; bool is_computed, is_output; void *data, *recorded; };\nstatic Value values[] = {\n";
  for (const ProgramValue& v : values) {
    const bool is_computed = v.from == ProgramValue::From::kernel || v.from == ProgramValue::From::product;
    out += "  {" + c_string(v.name) + ", " + c_string(std::string(ir::dtype_name(v.dtype))) + ", " + std::to_string(ir::dtype_bytes(v.dtype)) + ", " + std::to_string(v.bytes) + ", " + (is_computed ? "true" : "false") + ", " +
           (v.is_output ? "true" : "false") + "},\n";
  }
  out += "  {}\n};\nstatic const int value_count = " + std::to_string(values.size()) + ";\nstatic const char* const values_file = " + c_string(options.values_file) + ";\n\n";
  out += "// The units of a kernel's work, shared by threads as torch's would be.\nstatic void in_parts(void (*kernel)(void* const*, long, long), void* const* buffers, long units, long grain) {\n"
         "  const long parts = grain > 0 ? (units + grain - 1) / grain : 1;\n#pragma omp parallel for schedule(static) if (parts > 1)\n"
         "  for (long p = 0; p < parts; ++p) kernel(buffers, p * grain, p * grain + grain < units ? p * grain + grain : units);\n}\nstatic int bad_index;   // set by a kernel that meets an index out of range\n\n";
  std::string steps;
  int64_t number = 0;
  for (const ir::Node& n : program.graph.body.nodes) {
    const std::vector<Buffer>* buffers = nullptr;
    std::string body, computes, sizes;   // sizes: those that a text for every size reads behind its buffers
    Cost cost;
    if (const auto k = loops.find(n.target); k != loops.end()) {
      const Text& text = program.texts[k->second->text];
      buffers = &k->second->kernel.buffers;
      const Work& work = k->second->work;
      const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work.unit_elements));
      for (int64_t n : k->second->sizes) sizes += std::to_string(n) + ", ";
      body = "  in_parts(" + text.function + ", buffer, " + std::to_string(work.units) + ", " + std::to_string(grain) + ");\n";
      for (const std::string& c : k->second->kernel.comment) computes += (computes.empty() ? "" : "; ") + c;
      cost = cost_of(k->second->kernel);
    } else if (const auto p = products.find(n.target); p != products.end()) {
      const Product& x = *p->second;
      buffers = &x.buffers;
      const std::string type = x.dtype == ir::DType::f32 ? "float" : "double";
      const auto at = [&](const Product::Operand& o) { return "(" + type + "*)buffer[" + std::to_string(o.buffer) + "] + " + std::to_string(o.offset); };
      const auto strides = [](const char* name, const Product::Operand& o) { return "  const long " + std::string(name) + "[] = {" + std::to_string(o.batch) + ", " + std::to_string(o.row) + ", " + std::to_string(o.column) + "};\n"; };
      body = strides("sa", x.a) + strides("sb", x.b) + strides("sc", x.c) + "  product<" + type + ">(" + at(x.a) + ", " + at(x.b) + ", " + (x.bias ? at(*x.bias) : "nullptr") + ", " + at(x.c) + ", " + std::to_string(x.batch) + ", " +
             std::to_string(x.m) + ", " + std::to_string(x.n) + ", " + std::to_string(x.k) + ", sa, sb, sc);\n";
      if (x.window) {
        const Window& w = *x.window;
        const auto list = [](const char* name, std::initializer_list<int64_t> numbers) {
          std::string text;
          for (int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
          return "  const long " + std::string(name) + "[] = {" + text + "};\n";
        };
        body = list("w", {w.channels, w.height, w.width, w.out_height, w.out_width, w.size[0], w.size[1], w.step[0], w.step[1], w.pad[0], w.pad[1], w.dilation[0], w.dilation[1]}) +
               list("sx", {w.x_strides[0], w.x_strides[1], w.x_strides[2], w.x_strides[3]}) + "  convolution<" + type + ">(" + at(x.a) + ", " + at(x.b) + ", " + (x.bias ? at(*x.bias) : "nullptr") + ", " + at(x.c) + ", " +
               std::to_string(x.batch) + ", " + std::to_string(x.m) + ", w, sx);\n";
      }
      if (x.epilogue) {   // over the whole result at once, as if it were one tile
        body += "  void* const own[] = {";
        for (uint32_t b : x.epilogue_buffers) body += "buffer[" + std::to_string(b) + "], ";
        const auto own = std::ranges::find(program.kernels, x.name, [](const Generated& k) { return k.kernel.name; });
        for (int64_t size : own->sizes) sizes += std::to_string(size) + ", ";
        body += std::string(sizes.empty() ? "nullptr" : "(void*)sizes") + "};\n  " + program.texts[*x.epilogue].function + "(own, 0, " + std::to_string(x.batch * x.m) + ", 0, " + std::to_string(x.n) + ");\n";
      }
      computes = x.text();
      cost = cost_of(x);
    }
    if (!buffers || std::ranges::any_of(*buffers, [&](const Buffer& b) { return !index.contains(b.value); })) continue;
    const std::string id = std::to_string(number++);
    out += "static void run_" + id + "() {   // " + n.target + "\n" + (sizes.empty() ? "" : "  static const long sizes[] = {" + sizes + "};\n") + "  void* const buffer[] = {";
    std::string writes;
    for (const Buffer& b : *buffers) {
      out += "values[" + std::to_string(index.at(b.value)) + "].data, ";
      if (b.is_written) writes += std::to_string(index.at(b.value)) + ", ";
    }
    out += std::string(sizes.empty() ? "nullptr" : "(void*)sizes") + ", &bad_index};\n" + body + "}\nstatic const int writes_" + id + "[] = {" + writes + "-1};\n";
    steps += "  {" + c_string(n.target) + ", " + c_string(computes) + ", run_" + id + ", writes_" + id + ", " + std::to_string(cost.bytes) + "., " + std::to_string(cost.operations) + ".},\n";
  }
  out += "struct Step { const char *name, *computes; void (*run)(); const int* writes; double bytes, operations; };\nstatic const Step all_steps[] = {\n" + steps + "  {}\n};\nstatic const int step_count = " + std::to_string(number) + ";\n";
  out += kMain;
  return options.has_line_marks ? with_line_marks(out, program.rewritten, options.file) : out;
}

}  // namespace cutaway::codegen
