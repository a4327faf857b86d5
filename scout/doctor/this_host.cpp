#include "scout/doctor/this_host.hpp"

#include "base/config/config.hpp"
#include "base/os/daemon_users.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scout/doctor/verdicts.hpp"

#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace score::scout {
namespace {

constexpr int kConnectMs = 3000;

// Holds values of the configuration, with defaults for missing keys.
struct HostSettings {
  std::vector<std::string> node_heads;  // HOST:PORT; one or two
  std::string head_key = "/etc/scored/key";
  std::string node_key = "/etc/scored/node.key";
};

Result<HostSettings> read_host_settings(const std::string& path) {
  auto file = ConfigFile::load(path);
  if (!file) return file.error();
  HostSettings configured;
  ConfigSection node = file->root().section("node");
  std::string head;
  node.read("head", head);
  node.read("heads", configured.node_heads);
  if (configured.node_heads.empty() && !head.empty()) configured.node_heads = {head};
  node.read("key_file", configured.node_key);
  file->root().section("head").read("key_file", configured.head_key);
  return configured;
}

// Returns why the connection fails; empty if it works.
std::string try_address(const addrinfo& address) {
  const UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return std::strerror(errno);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, kConnectMs) <= 0) return "no answer within 3 s";
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? "" : std::strerror(error);
}

std::string try_connection(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (colon == endpoint.npos) return "not HOST:PORT";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string host = endpoint.substr(0, colon);
  const int failed = ::getaddrinfo(host.c_str(), endpoint.substr(colon + 1).c_str(), &hints, &list);
  if (failed != 0) return ::gai_strerror(failed);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(list, ::freeaddrinfo);
  std::string why;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    why = try_address(*one);
    if (why.empty()) break;
  }
  return why;
}

// Only one of two heads must answer, because the second one takes over when it is back.
void check_head(const HostSettings& configured, Findings& found) {
  constexpr const char* kRemedy =
      "start scored-head there; admit its TCP port in firewalls, and this network with "
      "scored-setup head --allow";
  if (configured.node_heads.empty()) {
    return found.skip("this host is not a node: [node] names no head");
  }
  std::string reached;
  std::vector<std::string> failures;
  for (const std::string& endpoint : configured.node_heads) {
    const std::string head = escape_terminal(endpoint, 200);
    const std::string why = try_connection(endpoint);
    if (why.empty()) reached = head;
    if (!why.empty()) {
      failures.push_back(fmt::format("no TCP connection to the head at {}: {}", head, why));
    }
  }
  const Level level = reached.empty() ? Level::Fault : Level::Warning;
  for (const std::string& text : failures) found.add(level, "", text, kRemedy);
  found.else_ok(
      fmt::format("the head at {} accepts TCP connections; if the node daemon cannot connect, see "
                  "IPAddressAllow= of scored-node.service",
                  reached));
}

// Checks the keys that are on this host.
void check_own_files(const std::string& path, const HostSettings& configured, Findings& found) {
  struct Place {
    wire::FileFact::Role role;
    std::string path;
    const char* user;
  };

  for (const Place& place : {Place{wire::FileFact::CONFIGURATION, path, kHeadUser},
                             Place{wire::FileFact::KEY, configured.head_key, kHeadUser},
                             Place{wire::FileFact::KEY, configured.node_key, kNodeUser}}) {
    const auto daemon = uid_of(place.user);
    if (!daemon) {
      found.fault("", fmt::format("the user {} is missing", place.user), "systemd-sysusers");
      continue;
    }

    struct stat info {};

    if (::stat(place.path.c_str(), &info) != 0) continue;
    wire::FileFact fact;
    fact.set_role(place.role);
    fact.set_path(place.path);
    fact.set_mode(info.st_mode);
    fact.set_owner(info.st_uid);
    judge_file({"", *daemon, kInstalledRemedies}, fact, found);
  }
  found.else_ok("keys and configuration have their owners and modes");
}

}  // namespace

std::vector<Finding> check_this_host(const std::string& path) {
  Findings files;
  Findings way;
  const auto configured = read_host_settings(path);
  if (configured) {
    check_own_files(path, *configured, files);
    check_head(*configured, way);
  } else {
    files.skip(fmt::format("not checked: {}", plain_text(configured.error())));
  }
  std::vector<Finding> all;
  const auto take = [&all](const char* check, const Findings& found) {
    for (Finding finding : found.all()) {
      finding.check = check;
      all.push_back(std::move(finding));
    }
  };
  take("files", files);
  take("connection", way);
  return all;
}

}  // namespace score::scout
