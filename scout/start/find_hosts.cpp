#include "scout/start/find_hosts.hpp"

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdlib>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr std::size_t kMaxFile = std::size_t{4} << 20U;

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<std::vector<Host>> read_hostfile(const std::string& path) {
  const auto text = read_file(path, kMaxFile);
  if (!text) return text.error();
  auto hosts = parse_hostfile(*text);
  if (!hosts) return hosts.error().with_context("{}", escape_terminal(path, 200));
  return hosts;
}

// Returns the hosts of the Flux instance, in the order of their ranks.
Result<std::string> ask_flux() {
  const auto program = find_in_path("flux");
  if (!program) return program.error();
  auto output = make_pipe();
  if (!output) return output.error();
  SpawnSpec spec;
  spec.path = *program;
  spec.argv = {"flux", "getattr", "hostlist"};
  spec.environment = own_environment();
  spec.fds = {{output->write.get(), 1}, {STDERR_FILENO, 2}};
  auto child = spawn(spec);
  if (!child) return child.error();
  output->write.reset();
  auto text = read_all(output->read.get(), kMaxFile);
  const auto ended = reap(child->pidfd.get(), true);
  if (!text) return text.error();
  if (!ended || (*ended)->shell_code() != 0) {
    return fail(Errc::Unsupported, "flux getattr hostlist failed");
  }
  return std::string(trim(*text));
}

// Returns the address of this host from which the kernel routes to `host`; empty if the name is not
// known here. A UDP connect sends nothing.
std::string address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const UniqueFd socket(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    auto* generic = reinterpret_cast<sockaddr*>(&own);
    std::array<char, NI_MAXHOST> text{};
    const bool is_known =
        socket && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), generic, &size) == 0 &&
        getnameinfo(generic, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0;
    if (is_known) return text.data();
  }
  return "";
}

// Returns true if other hosts cannot use the address: it is a loopback address, or valid only
// together with our interface.
bool is_local_only(std::string_view address) {
  return address.starts_with("127.") || address == "::1" || address.find('%') != address.npos;
}

// Returns the address of this host that other hosts reach; empty if none of the first hosts leads
// to one. Only a few hosts are tried, because each name may cost the resolver's timeout.
std::string own_address(const std::vector<Host>& hosts) {
  constexpr std::size_t kTries = 3;
  for (std::size_t i = 0; i < std::min(hosts.size(), kTries); ++i) {
    const auto& target = hosts[i].target;
    const auto found = address_towards(target.substr(target.rfind('@') + 1));
    if (!found.empty() && !is_local_only(found)) return found;
  }
  return "";
}

Result<FoundHosts> hosts_of(const Allocation& allocation) {
  auto text = allocation.hosts;
  if (allocation.via == Via::Flux) {
    auto answer = ask_flux();
    if (!answer) return answer.error();
    text = std::move(*answer);
  }
  auto hosts = allocation.hostfile.empty() ? parse_hosts(text) : read_hostfile(allocation.hostfile);
  if (!hosts) return hosts.error().with_context("{}", allocation.name);
  FoundHosts found{.hosts = std::move(*hosts), .via = allocation.via};
  give_slots(found.hosts, allocation.cores);
  found.memory = allocation.memory;
  found.own_address = own_address(found.hosts);
  return found;
}

}  // namespace

Result<FoundHosts> find_hosts(const HostSource& source) {
  if (!source.list.empty() && !source.file.empty()) {
    return fail(Errc::Malformed, "use either --hosts or --hostfile");
  }
  if (!source.list.empty() || !source.file.empty()) {
    auto hosts = source.file.empty() ? parse_hosts(source.list) : read_hostfile(source.file);
    if (!hosts) return hosts.error();
    FoundHosts found{.hosts = std::move(*hosts)};
    found.own_address = own_address(found.hosts);
    return found;
  }
  const auto allocation = find_allocation(variable);
  if (!allocation) {
    return fail(
        Errc::NotFound,
        "no hosts given; use --hosts or --hostfile, or run it in an allocation of Slurm, PBS or "
        "Flux");
  }
  return hosts_of(*allocation);
}

}  // namespace score::scout
