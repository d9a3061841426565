// cutaway replay: the frame of a record is captured again, alone, by a Python process of its own.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/cli/command.h"
#include "app/flows/workers.h"
#include "core/base/text.h"
#include "core/record/frame_record.h"

namespace cutaway::cli {

std::function<int()> declare_replay(CLI::App& app) {
  struct State { std::string path; bool is_trusted = false, json = false, verbose = false; };
  auto s = std::make_shared<State>();
  app.add_option("record", s->path, "the directory of a record")->required();
  app.add_flag("--trust", s->is_trusted, "run the record's code, and import the modules that it names");
  app.add_flag("--verbose", s->verbose, "what became of a frame that is captured now");
  app.add_flag("--json", s->json, "one JSON object");
  app.footer("A record is data until it is replayed: `cutaway show RECORD` executes nothing.\n"
             "Exit status: 0 it is captured now, 1 it fails as recorded, 3 it fails in another way, 2 wrong usage, unreadable or not trusted.");
  return [s] {
    auto read = record::read_record(s->path);   // refused here, before any Python starts
    if (!read.ok()) return fail(read.error());
    if (!s->is_trusted) {
      const std::vector<std::string> modules = record::imported_modules(*read);
      return fail({"replaying a record runs its code", s->path, "it imports " + (modules.empty() ? "nothing" : base::join(modules)) + ", and makes the classes and functions that it holds",
                   "--trust, when you know who wrote it; cutaway show " + s->path + " says what is in it", ""});
    }
    const flows::Programs programs = flows::find_programs(CUTAWAY_BUILD_PYTHON);
    std::vector<std::string> argv{programs.python, "-m", "cutaway.replay_record", "--trust", s->path};
    if (s->json) argv.push_back("--json");
    if (s->verbose) argv.push_back("--verbose");
    std::vector<char*> pointers;
    for (std::string& w : argv) pointers.push_back(w.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());   // its output and its end are ours
    return fail({"Python cannot be started", programs.python, std::strerror(errno), "cutaway doctor", ""});
  };
}

}  // namespace cutaway::cli
