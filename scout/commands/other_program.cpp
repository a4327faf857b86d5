// score virtual and score start are separate programs because they make keys, and the libraries for
// that would slow every start of scrun by some milliseconds.
#include "base/os/spawn.hpp"
#include "scout/commands/commands.hpp"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace score::scout {

namespace {

// Replaces this process by the program. `words` is the program's name and the arguments before
// --programs.
int become(const Invocation& invocation, std::vector<std::string> words) {
  const auto here = own_directory();
  const auto program = words[0];
  words.push_back("--programs=" + here.native());
  words.insert(words.end(), invocation.args.begin(), invocation.args.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (const char* place : {".", "../libexec/scored"}) {
    execv((here / place / program).c_str(), argv.data());
  }
  return print_error(invocation, fmt::format("{}: {}", program, std::strerror(errno)));
}

}  // namespace

int virtual_main(const Invocation& invocation) {
  return become(invocation, {"score-virtual"});
}

int start_main(const Invocation& invocation) {
  return become(invocation, {"score-start", "start"});
}

int stop_main(const Invocation& invocation) {
  return become(invocation, {"score-start", "stop"});
}

}  // namespace score::scout
