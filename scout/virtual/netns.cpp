#include "scout/virtual/netns.hpp"

#include "base/assert.hpp"
#include "base/os/spawn.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace score::scout {

namespace {

constexpr const char* kOwnNamespace = "/proc/self/ns/net";

// Runs a batch of ip(8) commands in the current namespace.
Status run_ip(const std::string& batch) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto program = find_executable("ip", "/usr/sbin:/sbin:/usr/bin:/bin");
  if (!program) return program.error().with_context("--netns needs iproute2");
  SpawnSpec spec;
  spec.path = *program;
  spec.argv = {"ip", "-batch", "-"};
  spec.fds = {{pipe->read.get(), 0}, {STDERR_FILENO, 2}};
  auto child = spawn(spec);
  if (!child) return child.error();
  const auto written = write_all(pipe->write.get(), batch);
  pipe->write.reset();
  const auto ended = reap(child->pidfd.get(), true);
  if (!written) return written;
  if (!ended) return ended.error();
  if ((*ended)->shell_code() != 0)
    return fail(Errc::Unsupported, "--netns: ip failed at: {}", batch);
  return {};
}

// Creates a new network namespace and moves this thread into it.
Result<UniqueFd> enter_new_namespace() {
  if (unshare(CLONE_NEWNET) != 0)
    return fail(errno_code(errno), "--netns: cannot create a network namespace");
  return open_file(kOwnNamespace, O_RDONLY);
}

std::string address_of(std::size_t index) {
  const std::size_t host = index + 2;  // .0.1 is the head
  return fmt::format("10.77.{}.{}", host / 250, host % 250 + 1);
}

}  // namespace

NodeNetworks::Enter::Enter(const UniqueFd& target, const UniqueFd& own_namespace)
    : own(own_namespace) {
  SCORE_ASSERT(setns(target.get(), CLONE_NEWNET) == 0);
}

NodeNetworks::Enter::~Enter() {
  SCORE_ASSERT(setns(own.get(), CLONE_NEWNET) == 0);
}

// Connects a node's namespace to the bridge, whose namespace has the other end. `ip` accepts a path
// instead of a namespace's name.
Status NodeNetworks::join_node(std::size_t index) {
  const auto peer = fmt::format("/proc/{}/fd/{}", getpid(), nodes_[index].get());
  auto status = inside(
      bridge_,
      [&, join = fmt::format("link add v{0} mtu {2} type veth peer name eth0 mtu {2} netns {1}\n"
                             "link set v{0} master br0 up\n",
                             index, peer, mtu_)] { return run_ip(join); });
  if (!status) return status;
  const auto setup =
      fmt::format("link set lo up\naddr add {}/16 dev eth0\nlink set eth0 up\n", address_of(index));
  return inside(nodes_[index], [&] { return run_ip(setup); });
}

Result<NodeNetworks> NodeNetworks::create(std::uint32_t nodes, std::uint32_t mtu) {
  NodeNetworks networks;
  networks.mtu_ = mtu;
  auto own = open_file(kOwnNamespace, O_RDONLY);
  if (!own) return own.error();
  networks.own_ = std::move(*own);
  for (std::uint32_t i = 0; i <= nodes; ++i) {
    auto made = enter_new_namespace();
    if (setns(networks.own_.get(), CLONE_NEWNET) != 0) return fail(errno_code(errno), "setns");
    if (!made) return made.error();
    if (i == 0) {
      networks.bridge_ = std::move(*made);
    } else {
      networks.nodes_.push_back(std::move(*made));
    }
  }
  auto status = networks.inside(networks.bridge_, [] {
    return run_ip(
        "link set lo up\nlink add br0 type bridge\naddr add 10.77.0.1/16 dev br0\nlink set br0 "
        "up\n");
  });
  for (std::size_t i = 0; status && i < nodes; ++i) status = networks.join_node(i);
  if (!status) return status.error();
  return networks;
}

}  // namespace score::scout
