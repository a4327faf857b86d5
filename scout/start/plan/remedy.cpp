#include "scout/start/plan/remedy.hpp"

#include <fmt/core.h>

namespace score::scout {

namespace {

struct Remedy {
  std::string_view words;   // part of the message
  std::string_view advice;  // {} is the target
};

constexpr Remedy kRemedies[] = {
    {"Permission denied", "ssh must work without a password: ssh-copy-id {}"},
    {"Host key verification failed", "accept its key once: ssh {} true"},
    {"Could not resolve", "check the name {}"},
    {"Name or service not known", "check the name {}"},
    {"Connection refused", "start sshd on {}, or leave the host out"},
    {"timed out", "check that {} is up, or leave the host out"},
    {"No route to host", "check that {} is up, or leave the host out"},
    {"Address already in use", "use another --port, or leave it out"},
    {"not allocated", "the allocation does not have {}"},
};

}  // namespace

std::string with_remedy(std::string_view words, std::string_view target) {
  for (const auto& remedy : kRemedies) {
    if (words.find(remedy.words) == words.npos) continue;
    return fmt::format("{}; {}", words, fmt::format(fmt::runtime(remedy.advice), target));
  }
  return std::string(words);
}

}  // namespace score::scout
