// Switches of torch that belong to the process and decide what operators do: which attention kernels may run, deterministic mode, the default dtype.
// A graph sets them by an operator, cutaway::set_switch, at the place where the program does.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace cutaway::exec {

/// The switch that a setter of torch._C sets ("_set_sdp_use_flash"); -1 when there is none.
int switch_set_by(std::string_view setter);
/// The setter's name.
const char* setter_of(int number);
int64_t switch_now(int number);
void set_switch(int number, int64_t value);

/// All switches as they are at one moment.
class SwitchState {
 public:
  SwitchState();
  void put_back() const;
  int64_t operator[](int number) const { return values_[static_cast<size_t>(number)]; }
  int size() const { return static_cast<int>(values_.size()); }

 private:
  std::vector<int64_t> values_;
};

}  // namespace cutaway::exec
