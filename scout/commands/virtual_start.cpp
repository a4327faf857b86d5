// score virtual is a separate program: it makes keys, and the libraries for that would slow every
// start of scrun by some milliseconds.
#include "scout/commands/commands.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace score::scout {

int virtual_main(const Invocation& invocation) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> words = {"score-virtual", "--programs=" + here.native()};
  words.insert(words.end(), invocation.args.begin(), invocation.args.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  for (const char* place : {".", "../libexec/scored"}) {
    execv((here / place / "score-virtual").c_str(), argv.data());
  }
  return complain(invocation, fmt::format("score-virtual: {}", std::strerror(errno)));
}

}  // namespace score::scout
