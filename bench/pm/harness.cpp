#include "bench/pm/harness.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace score::bench {

namespace {

constexpr int kRunTimeoutMs = 60'000;

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void pin_to_processor(int side) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0 || CPU_COUNT(&usable) < 2) return;
  int seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || seen++ != side) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void enter_namespace(int holder) {
  const std::string path = "/proc/" + std::to_string(holder) + "/ns/net";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) _exit(3);
  close(fd);
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void meet(Shared& shared, std::uint32_t times) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < 2 * times) sched_yield();
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  Spread spread{.samples = values};
  std::sort(values.begin(), values.end());
  spread.median = values[values.size() / 2];
  spread.low = values.front();
  spread.high = values.back();
  return spread;
}

TwoEnds::TwoEnds(bool with_network) : with_network_(with_network) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot allocate memory");
  shared_ = static_cast<Shared*>(memory);
  if (with_network_) make_namespaces();
}

TwoEnds::~TwoEnds() {
  for (const int holder : {holders_[0], holders_[1], bridge_holder_}) {
    if (holder <= 0) continue;
    kill(holder, SIGKILL);
    waitpid(holder, nullptr, 0);
  }
  munmap(shared_, sizeof(Shared));
}

int TwoEnds::hold_namespace() {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  const int holder = fork();
  if (holder < 0) throw std::runtime_error("cannot fork");
  if (holder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool made = unshare(CLONE_NEWNET) == 0;
    if (write(ready[1], made ? "y" : "n", 1) != 1 || !made) _exit(1);
    for (;;) pause();
  }
  char answer = 'n';
  close(ready[1]);
  const bool read_it = read(ready[0], &answer, 1) == 1;
  close(ready[0]);
  if (read_it && answer == 'y') return holder;
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  throw std::runtime_error("network namespaces need root");
}

void TwoEnds::make_namespaces() {
  for (int& holder : holders_) holder = hold_namespace();
  const std::string tag = std::to_string(getpid());
  run_command("ip link add pma" + tag + " type veth peer name pmb" + tag);
  run_command("ip link set pma" + tag + " netns " + std::to_string(holders_[0]) + " name pm0");
  run_command("ip link set pmb" + tag + " netns " + std::to_string(holders_[1]) + " name pm0");
  for (const int side : {0, 1}) configure(side);
}

void TwoEnds::configure(int side) {
  const std::string in = inside(side);
  run_command(in + "ip addr add " + address(side) + "/24 dev pm0");
  run_command(in + "ip link set pm0 up");
  run_command(in + "ip link set lo up");
  const int file = memfd_create("address", MFD_CLOEXEC);
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
  run_command(in + "cat /sys/class/net/pm0/address > " + path + " 2>/dev/null || " + in +
              "ip -o link show pm0 | sed 's/.*ether //;s/ .*//' > " + path);
  std::ifstream(path) >> macs_[side];
  close(file);
  if (macs_[side].empty()) {
    throw std::runtime_error("cannot read the address of pm0");
  }
}

std::string TwoEnds::inside_of(int holder) {
  return "nsenter -t " + std::to_string(holder) + " -n ";
}

std::string TwoEnds::inside(int side) const {
  return inside_of(holders_[side]);
}

void TwoEnds::put_bridge(unsigned mtu) {
  run_command(inside(0) + "ip link del pm0");
  bridge_holder_ = hold_namespace();
  const std::string middle = inside_of(bridge_holder_);
  run_command(middle + "ip link add br0 type bridge");
  run_command(middle + "ip link set br0 up");
  for (const int side : {0, 1}) {
    const std::string port = "port" + std::to_string(side);
    run_command(middle + "ip link add " + port +
                " mtu 9000 type veth peer name pm0 mtu 9000 netns " +
                std::to_string(holders_[side]));
    run_command(middle + "ip link set " + port + " master br0 up");
    configure(side);
  }
  set_bridge_mtu(mtu);
}

void TwoEnds::set_bridge_mtu(unsigned mtu) {
  for (const char* port : {"port0", "port1"}) {
    run_command(inside_of(bridge_holder_) + "ip link set " + port + " mtu " + std::to_string(mtu));
  }
}

std::string TwoEnds::address(int side) const {
  return with_network_ ? "10.77.0." + std::to_string(side + 1) : "127.0.0.1";
}

std::string TwoEnds::mac(int side) const {
  return macs_[side];
}

void TwoEnds::lose(double percent, bool passes) {
  for (const int holder : holders_) {
    const std::string in = "nsenter -t " + std::to_string(holder) + " -n nft ";
    if (std::system((in + "delete table netdev pmloss 2>/dev/null").c_str()) != 0 && percent <= 0) {
      continue;
    }
    if (percent <= 0) continue;
    const long mark = std::lround(percent * 1000);
    run_command(in + "add table netdev pmloss");
    run_command(in +
                "'add chain netdev pmloss in { type filter hook ingress device pm0 priority 0; }'");
    run_command(in + "'add rule netdev pmloss in numgen random mod 100000 < " +
                std::to_string(mark) + (passes ? " accept'" : " drop'"));
  }
}

void TwoEnds::cut_bursts() {
  for (const int side : {0, 1}) run_command(inside(side) + "ip link set pm0 gso_max_segs 1");
}

bool TwoEnds::spoil(const Spoil& spoil, std::string& reason) {
  const auto chance = [](double percent) {
    return "numgen random mod 100000 < " + std::to_string(std::lround(percent * 1000)) + " ";
  };
  // A PM header has its credit here, behind 28 bytes of IP and UDP, or at the start of the payload.
  const std::string udp_field =
      "ether type ip " + chance(spoil.damage) + "@nh,512,32 set 0xdeadbeef";
  const std::string own_field =
      "ether type 0x88b5 " + chance(spoil.damage) + "@nh,288,32 set 0xdeadbeef";
  cut_bursts();
  for (const int side : {0, 1}) {
    const std::string add = inside(side) + "nft add ";
    for (const std::string& words :
         {std::string("table netdev pmspoil"),
          std::string(
              "'chain netdev pmspoil in { type filter hook ingress device pm0 priority 0; }'"),
          std::string(
              "'chain netdev pmspoil out { type filter hook egress device pm0 priority 0; }'"),
          "'rule netdev pmspoil in " + chance(spoil.lose) + "drop'",
          "'rule netdev pmspoil in " + udp_field + "'",
          "'rule netdev pmspoil in " + own_field + "'",
          "'rule netdev pmspoil out " + chance(spoil.duplicate) + "dup to pm0'"}) {
      if (std::system((add + words).c_str()) == 0) continue;
      reason = "nftables cannot do: " + words;
      return false;
    }
  }
  return true;
}

void TwoEnds::enter(int side) const {
  enter_namespace(holders_[side]);
}

Shared& TwoEnds::run(const Side& side) {
  std::memset(static_cast<void*>(shared_), 0, offsetof(Shared, area));
  pid_t children[2];
  int pidfds[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    // A negative pid must not be kept, because a signal to process -1 goes to every process.
    if (children[i] < 0) {
      if (i == 1) kill(children[0], SIGKILL);
      throw std::runtime_error("cannot fork");
    }
    if (children[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (with_network_) enter_namespace(holders_[i]);
      pin_to_processor(i);
      shared_->pid[i] = getpid();
      try {
        side(i, *shared_);
      } catch (const std::exception& e) {
        std::snprintf(shared_->failure, sizeof shared_->failure, "side %d: %s", i, e.what());
        _exit(1);
      }
      _exit(0);
    }
    pidfds[i] = static_cast<int>(syscall(SYS_pidfd_open, children[i], 0));
  }
  bool failed = false;
  for (int i = 0; i < 2; ++i) {
    pollfd ended{pidfds[i], POLLIN, 0};
    int status = 1;
    if (failed || poll(&ended, 1, kRunTimeoutMs) != 1) kill(children[i], SIGKILL);
    waitpid(children[i], &status, 0);
    close(pidfds[i]);
    failed = failed || status != 0;
  }
  if (failed) {
    throw std::runtime_error(shared_->failure[0] != 0 ? shared_->failure : "a side timed out");
  }
  return *shared_;
}

}  // namespace score::bench
