#include "app/cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace cutaway::cli {
namespace {
std::atomic<bool> interrupted{false};
void on_interrupt(int) {
  if (interrupted.exchange(true)) _exit(130);   // the second time means it
}
}  // namespace

bool is_interrupted() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, nullptr);
    return true;
  }();
  return installed && interrupted;
}

bool was_interrupted() { return interrupted; }

}  // namespace cutaway::cli
