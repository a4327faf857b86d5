#include "scout/batch/slurm_variables.hpp"

#include "base/text/index_set.hpp"

#include <fmt/core.h>

#include <arpa/inet.h>
#include <filesystem>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <string_view>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::uint32_t kMostTasks = 1'000'000;  // per array

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// Returns the first IPv4 address of this host's name; the loopback address if it has none.
std::string address_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return "127.0.0.1";
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  char text[INET_ADDRSTRLEN] = {};
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  return inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr ? text : "127.0.0.1";
}

void add_array(std::vector<std::string>& entries, std::string_view array) {
  const auto tasks = IndexSet::parse(array.substr(0, array.find('%')), kMostTasks);
  if (!tasks || tasks->empty()) return;  // the head reports the error
  const std::uint32_t first = *tasks->next(0);
  const auto second = tasks->next(first + 1);
  std::uint32_t last = first;
  for (auto next = second; next; next = tasks->next(*next + 1)) last = *next;
  const auto add = [&entries](std::string_view name, std::uint32_t value) {
    entries.push_back(fmt::format("SLURM_ARRAY_TASK_{}={}", name, value));
  };
  add("COUNT", tasks->size());
  add("MIN", first);
  add("MAX", last);
  add("STEP", second ? *second - first : 1);
}

}  // namespace

void set_slurm_variables(std::vector<std::string>& entries, const SlurmSubmission& submission) {
  if (!submission.is_step) {
    std::erase_if(entries, [](const std::string& entry) {
      return entry.starts_with("SLURM_") || entry.starts_with("SLURMD_");
    });
    std::error_code error;
    const auto directory = std::filesystem::current_path(error);
    if (!error) entries.push_back("SLURM_SUBMIT_DIR=" + directory.string());
    entries.push_back("SLURM_SUBMIT_HOST=" + host_name());
    add_array(entries, submission.array);
  }
  if (!submission.is_program) return;
  const std::string start = "SLURM_LAUNCH_NODE_IPADDR=";
  std::erase_if(entries, [&](const std::string& entry) { return entry.starts_with(start); });
  entries.push_back(start + address_of(host_name()));
}

}  // namespace score::scout
