// The matrix product of the native backend: C = A B, with a bias, an existing C and an epilogue that sees every tile of C while
// it is still in cache. Nothing is kept across calls but scratch memory: operands are packed inside the call, where that pays,
// so a weight may change between two calls. docs/notes/native_gemm.md says what was tried and measured.
#pragma once
#include <cstdint>

namespace cutaway::kernels {

/// A matrix of any layout: element (i, j) is data[i * row_stride + j * column_stride]. Strides may be 0 or negative.
template <class T>
struct MatrixOf {
  const T* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};
using Matrix = MatrixOf<float>;

/// A finished part of C: rows x columns elements that begin at data; `row` and `column` say where in C (of matrix `batch`).
template <class T>
struct TileOf {
  T* data = nullptr;
  int64_t stride = 0;   ///< elements from one row to the next
  int64_t batch = 0;
  int64_t row = 0, rows = 0;
  int64_t column = 0, columns = 0;
};
using Tile = TileOf<float>;

/// Called with tiles of C that are complete, bias included; together they hold every element of C exactly once. It runs on
/// the threads of the product, several at once, and may change the tile. It must not call a product itself.
template <class T>
using EpilogueOf = void (*)(const void* context, const TileOf<T>&);
using Epilogue = EpilogueOf<float>;

/// How work is spread over threads. `run` calls body(body_context, part) once for each part in [0, parts), in any order and
/// on any threads, and returns when all are done. Null, or one thread: the caller's thread does everything.
/// No result depends on it: the order of each element's sum is fixed by sizes and layouts alone.
struct Parallel {
  void (*run)(void* self, int64_t parts, void (*body)(void* body_context, int64_t part), void* body_context) = nullptr;
  void* self = nullptr;
  int threads = 1;
};

/// What may follow a product. beta 0: C is written, and what it held is not read. Otherwise C = A B + bias + beta C.
template <class T>
struct OptionsOf {
  const T* bias = nullptr;   ///< one element a column of C, or null
  T beta = 0;
  EpilogueOf<T> epilogue = nullptr;
  const void* context = nullptr;   ///< the epilogue's first argument
  const T* packed = nullptr;       ///< B as pack_weight wrote it, for these sizes; B itself is then not read. Of a single product, not of a batch
};
using Options = OptionsOf<float>;

/// Batch `i` of a batched product begins `i` strides behind the first; a stride of 0 repeats an operand of A or B. The matrices
/// of C may not overlap.
struct Batches {
  int64_t count = 1;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  int64_t bias_stride = 0;
};

/// C[m, n] = A[m, k] B[k, n]; row i of C begins at c + i * c_row_stride, and its elements follow one another. C may not overlap
/// A, B or the bias. With k = 0 a sum is 0. NaN and infinity travel as in a plain sum.
void gemm(int64_t m, int64_t n, int64_t k, const MatrixOf<float>& a, const MatrixOf<float>& b, float* c, int64_t c_row_stride,
          const OptionsOf<float>& = {}, const Parallel& = {});
void gemm(int64_t m, int64_t n, int64_t k, const MatrixOf<double>& a, const MatrixOf<double>& b, double* c, int64_t c_row_stride,
          const OptionsOf<double>& = {}, const Parallel& = {});

/// The same for each matrix of a batch.
void batched_gemm(const Batches&, int64_t m, int64_t n, int64_t k, const MatrixOf<float>& a, const MatrixOf<float>& b, float* c,
                  int64_t c_row_stride, const OptionsOf<float>& = {}, const Parallel& = {});
void batched_gemm(const Batches&, int64_t m, int64_t n, int64_t k, const MatrixOf<double>& a, const MatrixOf<double>& b, double* c,
                  int64_t c_row_stride, const OptionsOf<double>& = {}, const Parallel& = {});

/// Elements that a packed copy of B[k, n] has for products of m rows, or 0 where such a product reads B as it lies. Written to `out`, where that is
/// given. Products with it give the same bits as without.
int64_t pack_weight(int64_t m, int64_t n, int64_t k, const MatrixOf<float>& b, float* out = nullptr);
int64_t pack_weight(int64_t m, int64_t n, int64_t k, const MatrixOf<double>& b, double* out = nullptr);

}  // namespace cutaway::kernels
