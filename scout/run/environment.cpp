#include "scout/run/environment.hpp"

#include "base/text.hpp"

#include <cstdlib>
#include <map>
#include <unistd.h>

namespace score::scout {

namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Variables own_variables() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto at = text.find('=');
    if (at == text.npos || at == 0) continue;
    variables.emplace(text.substr(0, at), text.substr(at + 1));
  }
  return variables;
}

// What a login sets.
Variables basic_variables(const Variables& own) {
  Variables basic;
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG"}) {
    if (const auto found = own.find(name); found != own.end()) basic.insert(*found);
  }
  return basic;
}

Status add_item(Variables& chosen, const Variables& own, std::string_view item) {
  const auto at = item.find('=');
  if (item.empty() || at == 0) {
    return fail(Errc::Malformed, "--export: '{}' is not NAME or NAME=value",
                escape_terminal(item, 80));
  }
  const std::string name(item.substr(0, at));
  if (at != item.npos) {
    chosen[name] = std::string(item.substr(at + 1));
  } else if (const auto found = own.find(name); found != own.end()) {
    chosen[name] = found->second;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> exported_environment(std::string_view rule, bool unbuffered) {
  const Variables own = own_variables();
  Variables chosen;
  for (const auto item : split(rule, ',')) {
    if (item == "ALL") {
      chosen.insert(own.begin(), own.end());
    } else if (item == "NONE") {
      chosen.merge(basic_variables(own));
    } else if (auto status = add_item(chosen, own, item); !status) {
      return status.error();
    }
  }
  if (!rule.starts_with("ALL")) chosen.merge(basic_variables(own));
  if (unbuffered) {
    chosen["LD_PRELOAD"] = "/usr/libexec/coreutils/libstdbuf.so";
    chosen["_STDBUF_O"] = "0";
    chosen["_STDBUF_E"] = "0";
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : chosen) entries.push_back(name + "=" + value);
  return entries;
}

Result<std::vector<std::string>> named_variables(std::string_view rule) {
  const Variables own = own_variables();
  Variables chosen;
  for (const auto item : split(rule, ',')) {
    if (auto status = add_item(chosen, own, item); !status) return status.error();
  }
  std::vector<std::string> entries;
  for (const auto& [name, value] : chosen) entries.push_back(name + "=" + value);
  return entries;
}

}  // namespace score::scout
