#include "scout/setup/host.hpp"

#include "base/limits.hpp"
#include "base/os/daemon_users.hpp"
#include "base/os/fd.hpp"
#include "base/os/host_facts.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <ifaddrs.h>
#include <linux/magic.h>
#include <net/if.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace score::scout {
namespace {

constexpr const char* kExample = "/usr/share/scored/scored.toml";
constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::size_t kMostOutput = 64U << 10U;

// Returns the bits of an address or a mask in network order.
std::vector<std::uint8_t> bits_of(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
    return {bytes, bytes + sizeof(in_addr)};
  }
  if (address->sa_family == AF_INET6) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
    return {bytes, bytes + sizeof(in6_addr)};
  }
  return {};
}

std::string network_of(const ifaddrs& entry) {
  auto address = bits_of(entry.ifa_addr);
  const auto mask = bits_of(entry.ifa_netmask);
  if (address.empty() || mask.size() != address.size()) return {};
  int length = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    address[i] = static_cast<std::uint8_t>(address[i] & mask[i]);
    length += __builtin_popcount(mask[i]);
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (inet_ntop(entry.ifa_addr->sa_family, address.data(), text.data(), text.size()) == nullptr) {
    return {};
  }
  return fmt::format("{}/{}", text.data(), length);
}

// Calls `visit` for each address of an interface that is up, except loopback.
template <typename Visit>
void for_each_address(Visit visit) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    const bool is_up = (entry->ifa_flags & IFF_UP) != 0;
    if (is_up && (entry->ifa_flags & IFF_LOOPBACK) == 0) visit(*entry);
  }
  ::freeifaddrs(all);
}

// Returns the address from which packets to `address` leave.
std::vector<std::uint8_t> local_address(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), "7421", &hints, &found) != 0) return {};
  const UniqueFd fd(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  const bool is_known = ::connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0;
  ::freeaddrinfo(found);
  return is_known ? bits_of(reinterpret_cast<const sockaddr*>(&local))
                  : std::vector<std::uint8_t>{};
}

std::uint32_t mtu_of(const std::string& interface) {
  const auto text = read_file("/sys/class/net/" + interface + "/mtu", 64);
  return text ? parse_number<std::uint32_t>(trim(*text)).value_or(0) : 0;
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& words) {
  const auto path = find_executable(words.at(0), kPath);
  if (!path) return path.error().with_context("{}", words[0]);
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  SpawnSpec spec;
  spec.path = *path;
  spec.argv = words;
  spec.environment = {fmt::format("PATH={}", kPath), "LC_ALL=C.UTF-8"};
  spec.fds = {{pipe->write.get(), STDOUT_FILENO}, {pipe->write.get(), STDERR_FILENO}};
  auto child = spawn(spec);
  if (!child) return child.error();
  pipe->write.reset();
  auto output = read_all(pipe->read.get(), kMostOutput);
  pipe->read.reset();
  const auto status = reap(child->pidfd.get(), true);
  if (!status) return status.error();
  if ((*status)->shell_code() == 0) return output.value_or("");
  const std::string said = output ? last_line(*output) : "";
  return fail(Errc::WrongState, "{} {}: {}", words[0], words.size() > 1 ? words[1] : "",
              said.empty() ? fmt::format("status {}", (*status)->shell_code()) : said);
}

Status check_installed(const std::string& unit) {
  if (::geteuid() != 0) return fail(Errc::Denied, "run this command as root");
  if (!exists("/run/systemd/system")) {
    return fail(Errc::Unsupported, "this host does not run systemd; score-start(1) needs none");
  }
  for (const char* user : {kHeadUser, kNodeUser}) {
    if (uid_of(user)) continue;
    return fail(Errc::NotFound,
                "the user {} is missing: install the packages, or run "
                "systemd-sysusers",
                user);
  }
  if (!run_program({"systemctl", "cat", unit})) {
    return fail(Errc::NotFound, "{} is not installed: apt install {}", unit,
                unit.substr(0, unit.find('.')));
  }
  return {};
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

Result<std::string> read_configuration() {
  for (const char* path : {kConfigFile, kExample}) {
    if (exists(path)) return read_file(path, limits::kMaxConfigBytes);
  }
  return std::string();
}

Status write_configuration(const std::string& text, const std::string& role) {
  ::mkdir("/etc/scored", 0755);
  const std::string candidate = fmt::format("{}.new", kConfigFile);
  if (auto written = replace_file(candidate, text, 0644); !written) return written;
  const auto checked =
      run_program({"scored", "--role=" + role, "--check-config", "--config", candidate});
  if (!checked) {
    ::unlink(candidate.c_str());
    return checked.error();
  }
  if (::rename(candidate.c_str(), kConfigFile) == 0) return {};
  return fail(errno_code(errno), "cannot replace {}", kConfigFile);
}

Status write_key(const std::string& path, const proto::NumberedKey& key, const char* user) {
  std::string text = proto::format_numbered_key(key) + "\n";
  auto stored = replace_file(path, text, 0600);
  proto::wipe(text);
  if (!stored) return stored;
  return give_to_daemon(path, user);
}

Result<proto::NumberedKey> read_key(const std::string& path) {
  auto text = read_file(path, proto::kMostKeyFileBytes);
  if (!text) return text.error();
  const auto ring = proto::KeyRing::parse(trim(*text));
  proto::wipe(*text);
  if (!ring) return ring.error().with_context("{}", path);
  return ring->newest();
}

Status give_to_daemon(const std::string& path, const char* user) {
  const passwd* entry = ::getpwnam(user);
  if (entry == nullptr) return fail(Errc::NotFound, "cannot find the user {}", user);
  if (::lchown(path.c_str(), entry->pw_uid, entry->pw_gid) == 0) return {};
  return fail(errno_code(errno), "cannot change the owner of {} to {}", path, user);
}

Status start_unit(const std::string& unit) {
  auto started = run_program({"systemctl", "enable", unit});
  if (started) started = run_program({"systemctl", "restart", unit});
  if (started) return {};
  const auto journal =
      run_program({"journalctl", "--quiet", "-t", "scored", "-u", unit, "-n", "1", "-o", "cat"});
  (void)run_program({"systemctl", "disable", "--now", unit});
  return fail(Errc::WrongState, "{} does not start: {}; repair it and run the command again", unit,
              journal && !journal->empty() ? last_line(*journal) : started.error().context());
}

std::vector<std::string> connected_networks() {
  std::vector<std::string> networks;
  for_each_address([&networks](const ifaddrs& entry) {
    const std::string network = network_of(entry);
    if (!network.empty() && std::ranges::find(networks, network) == networks.end()) {
      networks.push_back(network);
    }
  });
  return networks;
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &all) != 0) return {};
  std::vector<std::string> addresses;
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const auto bits = bits_of(one->ai_addr);
    if (inet_ntop(one->ai_family, bits.data(), text.data(), text.size()) != nullptr) {
      addresses.emplace_back(text.data());
    }
  }
  ::freeaddrinfo(all);
  return addresses;
}

std::vector<std::string> name_servers(std::string_view resolv_conf) {
  constexpr std::string_view kWord = "nameserver ";
  std::vector<std::string> found;
  for (auto line : split(resolv_conf, '\n')) {
    line = trim(line);
    if (!line.starts_with(kWord)) continue;
    const std::string address(trim(line.substr(kWord.size())));
    std::array<unsigned char, sizeof(in6_addr)> bits{};
    const bool is_numeric = inet_pton(AF_INET, address.c_str(), bits.data()) == 1 ||
                            inet_pton(AF_INET6, address.c_str(), bits.data()) == 1;
    if (is_numeric) found.push_back(address);
  }
  return found;
}

Status admit_networks(const std::string& unit, const std::vector<std::string>& more) {
  const std::string directory = "/etc/systemd/system/" + unit + ".d";
  auto networks = connected_networks();
  networks.insert(networks.end(), more.begin(), more.end());
  std::string text = "# Written by scored-setup: with what the daemon may exchange packets.\n";
  text += "[Service]\n";
  for (const auto& network : networks) text += fmt::format("IPAddressAllow={}\n", network);
  ::mkdir(directory.c_str(), 0755);
  auto written = replace_file(directory + "/scored-setup.conf", text, 0644);
  if (!written) return written;
  const auto loaded = run_program({"systemctl", "daemon-reload"});
  return loaded ? Status() : loaded.error();
}

bool is_port_free(std::uint16_t port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(fd.get(), 1) == 0;
}

HostState read_host(const std::string& address, const std::vector<NamedUser>& users) {
  HostState host;
  if (const auto facts = read_host_facts()) host.name = facts->name;

  struct statfs mounted {};

  host.has_unified_cgroups = ::statfs("/sys/fs/cgroup", &mounted) == 0 &&
                             mounted.f_type == static_cast<__fsword_t>(CGROUP2_SUPER_MAGIC);
  if (const auto text = read_file("/sys/fs/cgroup/cgroup.controllers", 4096)) {
    for (const auto word : split(trim(*text), ' ')) host.cgroup_controllers.emplace_back(word);
  }
  const auto towards = local_address(address);
  for_each_address([&](const ifaddrs& entry) {
    if (!towards.empty() && bits_of(entry.ifa_addr) == towards) host.interface = entry.ifa_name;
  });
  if (!host.interface.empty()) host.mtu = mtu_of(host.interface);
  for (const NamedUser& user : users) {
    const passwd* here = ::getpwnam(user.name.c_str());
    host.users.emplace_back(
        user, here != nullptr ? std::optional<std::uint32_t>(here->pw_uid) : std::nullopt);
  }
  return host;
}

}  // namespace score::scout
