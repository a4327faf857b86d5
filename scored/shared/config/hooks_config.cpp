#include "scored/shared/config/hooks_config.hpp"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace score {
namespace {

constexpr std::size_t kMaxPath = 1'000;
constexpr Duration kMostTime = std::chrono::hours{1};
constexpr Duration kMostSubmitTime = std::chrono::minutes{1};
constexpr Duration kLeastSubmitTime = std::chrono::milliseconds{100};
constexpr Duration kLeastHealthPeriod = std::chrono::seconds{1};
constexpr Duration kMostHealthPeriod = std::chrono::hours{24};

void read_program(ConfigSection& section, std::string_view key, std::string& path) {
  section.read(key, path);
  if (path.empty() || (path.starts_with('/') && path.size() <= kMaxPath)) return;
  section.refuse(key, "must be an absolute path");
}

std::string shown(const std::string& path) {
  return escape_terminal(path, 200);
}

bool is_trusted(const struct stat& status, UserId owner) {
  return status.st_uid == 0 || status.st_uid == owner.value();
}

// In a sticky directory only the owner of an entry may replace it, and the entry is checked too.
Status check_part(const std::string& path, UserId owner) {
  struct stat status {};

  if (lstat(path.c_str(), &status) != 0)
    return fail(errno_code(errno), "cannot use {}", shown(path));
  if (!is_trusted(status, owner)) {
    return fail(Errc::Denied, "{} belongs to user {}: give it to root", shown(path), status.st_uid);
  }
  const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || is_sticky) return {};
  return fail(Errc::Denied, "{0} is writable by others: chmod go-w {0}", shown(path));
}

}  // namespace

std::string_view name_of(Hook hook) {
  switch (hook) {
    case Hook::Prolog:
      return "prolog";
    case Hook::Epilog:
      return "epilog";
    case Hook::Health:
      return "health";
    case Hook::Submit:
      return "submit";
  }
  return "?";
}

const std::string& HooksConfig::path_of(Hook hook) const {
  switch (hook) {
    case Hook::Prolog:
      return prolog;
    case Hook::Epilog:
      return epilog;
    case Hook::Health:
      return health;
    case Hook::Submit:
      break;
  }
  return submit;
}

Duration HooksConfig::timeout_of(Hook hook) const {
  return hook == Hook::Submit ? submit_timeout : timeout;
}

HooksConfig read_hooks_config(ConfigSection& root) {
  HooksConfig config;
  ConfigSection section = root.section("hooks");
  read_program(section, "prolog", config.prolog);
  read_program(section, "epilog", config.epilog);
  read_program(section, "health", config.health);
  read_program(section, "submit", config.submit);
  section.read("timeout", config.timeout, std::chrono::seconds{1}, kMostTime);
  section.read("submit_timeout", config.submit_timeout, kLeastSubmitTime, kMostSubmitTime);
  section.read("health_every", config.health_every, kLeastHealthPeriod, kMostHealthPeriod);
  section.read_choice("submit_failure", config.accepts_on_failure,
                      {{"accept", true}, {"refuse", false}});
  return config;
}

Status check_hook_file(const std::string& path, UserId owner) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return fail(errno_code(errno), "cannot use {}", shown(path));
  if (path != real.get()) {
    return fail(Errc::Malformed, "{} leads to {}: name that file", shown(path), shown(real.get()));
  }

  struct stat status {};

  if (lstat(path.c_str(), &status) != 0)
    return fail(errno_code(errno), "cannot use {}", shown(path));
  if (!S_ISREG(status.st_mode) || (status.st_mode & S_IXUSR) == 0) {
    return fail(Errc::Malformed, "{0} is not an executable file: chmod u+x {0}", shown(path));
  }
  for (std::size_t end = path.size(); end != std::string::npos;) {
    const std::string part = end == 0 ? "/" : path.substr(0, end);
    if (auto sound = check_part(part, owner); !sound) return sound;
    if (end == 0) break;
    end = path.find_last_of('/', end - 1);
  }
  return {};
}

Status check_hook_files(const HooksConfig& config, std::initializer_list<Hook> hooks,
                        UserId owner) {
  for (const Hook hook : hooks) {
    const std::string& path = config.path_of(hook);
    if (path.empty()) continue;
    if (auto sound = check_hook_file(path, owner); !sound) {
      return sound.error().with_context("[hooks] {}", name_of(hook));
    }
  }
  return {};
}

}  // namespace score
