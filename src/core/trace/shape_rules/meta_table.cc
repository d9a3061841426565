#include "core/trace/shape_rules/meta_table.h"

namespace cutaway::trace {
namespace {
const KernelTable& rows() {
  static const KernelTable table = [] {
    KernelTable t;
    detail::add_meta_rows_0(t);
    detail::add_meta_rows_1(t);
    detail::add_meta_rows_2(t);
    detail::add_meta_rows_3(t);
    return t;
  }();
  return table;
}
}  // namespace

const c10::KernelFunction* find_meta_kernel(const std::string& full_name) {
  const auto it = rows().find(full_name);
  return it == rows().end() ? nullptr : &it->second;
}

}  // namespace cutaway::trace
