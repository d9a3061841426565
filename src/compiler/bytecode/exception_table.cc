#include "compiler/bytecode/exception_table.h"

namespace cutaway::bytecode {
namespace {

// Numbers are big-endian groups of six bits; bit 6 says that another group follows, bit 7 that an entry begins.
constexpr uint8_t kMore = 0x40, kBegin = 0x80, kBits = 0x3f;

bool read_number(const uint8_t*& at, const uint8_t* end, int32_t& value) {
  value = 0;
  while (at < end) {
    const uint8_t byte = *at++;
    value = (value << 6) | (byte & kBits);
    if (!(byte & kMore)) return true;
  }
  return false;
}

void write_number(std::string& out, int32_t value, uint8_t first) {
  int shift = 0;
  while ((value >> shift) > kBits) shift += 6;
  for (; shift >= 0; shift -= 6) {
    out.push_back(static_cast<char>(first | (shift ? kMore : 0) | ((value >> shift) & kBits)));
    first = 0;
  }
}

}  // namespace

std::vector<ExceptionEntry> read_exception_table(PyCodeObject* code) {
  std::vector<ExceptionEntry> out;
  const auto* at = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const auto* end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
  while (at < end) {
    ExceptionEntry e;
    int32_t length = 0, depth_and_lasti = 0;
    if (!read_number(at, end, e.start) || !read_number(at, end, length) || !read_number(at, end, e.target) || !read_number(at, end, depth_and_lasti)) break;
    e.end = e.start + length;
    e.depth = depth_and_lasti >> 1;
    e.lasti = depth_and_lasti & 1;
    out.push_back(e);
  }
  return out;
}

std::string write_exception_table(const std::vector<ExceptionEntry>& entries) {
  std::string out;
  for (const ExceptionEntry& e : entries) {
    write_number(out, e.start, kBegin);
    write_number(out, e.end - e.start, 0);
    write_number(out, e.target, 0);
    write_number(out, (e.depth << 1) | (e.lasti ? 1 : 0), 0);
  }
  return out;
}

}  // namespace cutaway::bytecode
