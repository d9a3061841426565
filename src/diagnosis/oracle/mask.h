// Masks what changes from run to run and from candidate to candidate in one line of a message.
#pragma once
#include <string>
#include <string_view>

namespace cutaway::oracle {

/// The line as a sequence of words, each judged by its form alone:
///   0x7f12…              ADDR       an address
///   /tmp/x/y.py          PATH       two or more parts
///   3, -1.5e-3           N          a number
///   buf12, relu_3, s0    buf, …     a bare name loses its number, since the first of its kind often has none. Kept: dtypes
///                                   (float32, bf16), and names after '.' or '::' (aten.log2, torch.float16), which somebody chose
///   cpp_fused_add_0      KERNEL     Inductor's kernel names list what happens to be fused
///   %x.1                 %V         a value of a graph
///   cabc…51 letters      HASH       a long word of letters and digits
///   [2, 64], (4*s0, 1)   [N], (N)   brackets with nothing but numbers, sizes and separators, also nested
/// Runs of white space become one space. Linear in the length.
std::string mask_line(std::string_view line);

}  // namespace cutaway::oracle
