// How far a child got: a word that survives its death, in memory shared with the server.
#pragma once
#include <string>
#include <string_view>

namespace cutaway::worker {

/// One word shared between a server and one child. The server makes it before it forks; empty until the child says something.
class PhasePage {
 public:
  static constexpr size_t kMaxWord = 31;
  PhasePage();
  ~PhasePage();
  PhasePage(PhasePage&&) noexcept;
  PhasePage& operator=(PhasePage&&) noexcept;
  std::string read() const;
  /// In the child: what set_phase() writes to from now on.
  void adopt() const;

 private:
  char* page_ = nullptr;   // null when there is no memory for it: phases are then unknown
};

/// In a child: "eager", "backend", …; at most PhasePage::kMaxWord characters. Does nothing outside of a child.
void set_phase(std::string_view);

}  // namespace cutaway::worker
