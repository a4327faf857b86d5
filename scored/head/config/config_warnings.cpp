#include "scored/head/config/config_warnings.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <grp.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

using Lines = std::vector<std::string>;

void check_group(const HostLookups& host, const std::string& group, const std::string& where,
                 Lines& out) {
  if (host.has_group(group)) return;
  out.push_back(fmt::format("{}: no group {} on this host", where, escape_terminal(group, 80)));
}

// Names are users, or groups as "@group".
void check_names(const HostLookups& host, const std::vector<std::string>& names,
                 const std::string& where, Lines& out) {
  for (const std::string& name : names) {
    if (name.starts_with('@')) {
      check_group(host, name.substr(1), where, out);
    } else if (!host.has_user(name)) {
      out.push_back(fmt::format("{}: no user {} on this host", where, escape_terminal(name, 80)));
    }
  }
}

void check_files(const HostLookups& host, const monitor::MonitorSettings& monitor, Lines& out) {
  for (const auto& [key, path] :
       {std::pair("tls_certificate", monitor.certificate), std::pair("tls_key", monitor.key),
        std::pair("token_file", monitor.token_file)}) {
    if (path.empty() || host.can_read(path)) continue;
    out.push_back(fmt::format("[monitor] {}: cannot read {}; the head will not start", key,
                              escape_terminal(path, 200)));
  }
}

}  // namespace

HostLookups host_lookups() {
  HostLookups out;
  out.has_user = [](const std::string& name) { return find_user(name).has_value(); };
  out.has_group = [](const std::string& name) { return ::getgrnam(name.c_str()) != nullptr; };
  out.can_read = [](const std::string& path) { return ::access(path.c_str(), R_OK) == 0; };
  return out;
}

std::vector<std::string> config_warnings(const HeadConfig& config, const HostLookups& host) {
  Lines out;
  check_names(host, config.operators.users, "[head] operators", out);
  // The default need not exist: then only root and `operators` are operators.
  const std::string& group = config.operators.group;
  if (!group.empty() && group != HeadConfig().operators.group) {
    check_group(host, group, "[head] operator_group", out);
  }
  check_names(host, config.limits.exempt, "[limits] exempt", out);
  for (const Account& account : config.accounts.accounts) {
    check_names(host, account.users, fmt::format("[accounts.{}] users", account.name), out);
  }
  if (config.long_limit > config.long_shared && config.long_shared > Duration(0)) {
    out.push_back(fmt::format(
        "[head] long_limit: {} is above long_shared, {}, so no two long jobs share nodes",
        format_duration(config.long_limit), format_duration(config.long_shared)));
  }
  check_files(host, config.monitor, out);
  for (std::string& line : notify_warnings(config.notify)) out.push_back(std::move(line));
  return out;
}

}  // namespace score::head
