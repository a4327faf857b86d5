// This does the work of tc(8) and ip(8): it adds the qdisc clsact with one filter for outgoing
// frames, and a macvlan.
#include "scored/privileged/ring_guard/interface.hpp"

#include "scored/privileged/ring_guard/bounds.hpp"
#include "scored/privileged/ring_guard/netlink.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::ring_guard {

namespace {

constexpr std::uint32_t kFirst = 1;  // priority: no other filter can pass a frame before ours

int add_clsact(int interface) {
  NetlinkRequest<tcmsg> request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL);
  request.body().tcm_ifindex = interface;
  request.body().tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  request.body().tcm_parent = TC_H_CLSACT;
  request.add(TCA_KIND, "clsact");
  const int failed = carry_out(request.bytes());
  return failed == -EEXIST ? 0 : failed;
}

int add_filter(int interface, int program) {
  NetlinkRequest<tcmsg> request(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE);
  request.body().tcm_ifindex = interface;
  request.body().tcm_handle = 1;
  request.body().tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
  request.body().tcm_info = TC_H_MAKE(kFirst << 16, htons(ETH_P_ALL));
  request.add(TCA_KIND, "bpf");
  rtattr* options = request.add(TCA_OPTIONS, nullptr, 0);
  request.add(TCA_BPF_FD, static_cast<std::uint32_t>(program));
  request.add(TCA_BPF_NAME, "scored_rings");
  request.add(TCA_BPF_FLAGS, std::uint32_t{TCA_BPF_FLAG_ACT_DIRECT});
  request.close(options);
  return carry_out(request.bytes());
}

// The macvlan is private, so its frames always leave through the lower interface and its filter.
int add_macvlan(int lower, int space) {
  NetlinkRequest<ifinfomsg> request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.add(IFLA_IFNAME, kRingInterface);
  request.add(IFLA_LINK, static_cast<std::uint32_t>(lower));
  request.add(IFLA_NET_NS_FD, static_cast<std::uint32_t>(space));
  rtattr* info = request.add(IFLA_LINKINFO, nullptr, 0);
  request.add(IFLA_INFO_KIND, "macvlan");
  rtattr* data = request.add(IFLA_INFO_DATA, nullptr, 0);
  request.add(IFLA_MACVLAN_MODE, std::uint32_t{MACVLAN_MODE_PRIVATE});
  request.close(data);
  request.close(info);
  return carry_out(request.bytes());
}

int set_up(int interface) {
  NetlinkRequest<ifinfomsg> request(RTM_NEWLINK, 0);
  request.body().ifi_index = interface;
  request.body().ifi_flags = IFF_UP;
  request.body().ifi_change = IFF_UP;
  return carry_out(request.bytes());
}

// Disables IPv6, because the kernel would look for routers through the new interface.
void switch_off_ipv6() {
  const int file = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;  // there is no IPv6
  [[maybe_unused]] const ssize_t written = write(file, "1", 1);
  close(file);
}

}  // namespace

int carry_out(std::string_view request) {
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (netlink < 0) return -errno;
  alignas(nlmsghdr) std::array<std::byte, 4096> answer;
  ssize_t got = send(netlink, request.data(), request.size(), 0);
  if (got >= 0) got = recv(netlink, answer.data(), answer.size(), 0);
  const int error = errno;
  close(netlink);
  if (got < 0) return -error;
  nlmsgerr result{};
  if (got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof result)) return -EPROTO;
  std::memcpy(&result, answer.data() + NLMSG_HDRLEN, sizeof result);
  return result.error;
}

int filter_interface(const char* interface, int program, const char*& step) {
  step = "find the interface";
  const auto index = static_cast<int>(if_nametoindex(interface));
  if (index == 0) return -errno;
  step = "add the qdisc clsact";
  if (const int failed = add_clsact(index); failed != 0) return failed;
  step = "add the filter";
  return add_filter(index, program);
}

int add_ring_interface(const char* interface, int space, const char*& step) {
  step = "enter the rings' network namespace";
  const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (own < 0 || setns(space, CLONE_NEWNET) != 0) return -errno;
  switch_off_ipv6();
  if (setns(own, CLONE_NEWNET) != 0) return -errno;
  close(own);
  step = "add a macvlan interface";
  const auto lower = static_cast<int>(if_nametoindex(interface));
  if (const int failed = add_macvlan(lower, space); failed != 0) return failed;
  step = "set up the macvlan interface";
  if (setns(space, CLONE_NEWNET) != 0) return -errno;
  return set_up(static_cast<int>(if_nametoindex(kRingInterface)));
}

}  // namespace score::ring_guard
