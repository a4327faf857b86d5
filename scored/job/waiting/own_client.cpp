#include "scored/job/waiting/own_client.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

constexpr std::uint8_t kEstablished = 1;  // TCP_ESTABLISHED of the kernel
constexpr std::size_t kReplyBytes = 32UL * 1024;

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 what;
};

// Returns the number by which the kernel names the cgroup of this process; 0: it has none.
std::uint64_t cgroup_of_this_process() {
  const auto own = base::own_cgroup();

  struct stat info {};

  return own && stat(own->c_str(), &info) == 0 ? info.st_ino : 0;
}

Question question_about_port(std::uint16_t port) {
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.what.sdiag_family = AF_INET;
  question.what.sdiag_protocol = IPPROTO_TCP;
  question.what.idiag_states = 1U << kEstablished;
  question.what.id.idiag_dport = htons(port);
  question.what.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  question.what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

std::optional<std::uint64_t> cgroup_in(const nlmsghdr& header, const inet_diag_msg& found) {
  auto left = static_cast<int>(NLMSG_PAYLOAD(&header, sizeof found));
  const auto* attribute = reinterpret_cast<const rtattr*>(&found + 1);
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type != INET_DIAG_CGROUP_ID) continue;
    std::uint64_t number = 0;
    std::memcpy(&number, RTA_DATA(attribute), sizeof number);
    return number;
  }
  return std::nullopt;
}

bool is_own(const nlmsghdr& header) {
  static const std::uint64_t own = cgroup_of_this_process();
  if (header.nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return false;
  const auto* start = reinterpret_cast<const char*>(&header) + NLMSG_HDRLEN;
  const auto& found = *reinterpret_cast<const inet_diag_msg*>(start);
  if (found.idiag_uid != getuid() || found.idiag_state != kEstablished) return false;
  const auto cgroup = cgroup_in(header, found);
  return own == 0 || !cgroup || *cgroup == own;
}

// Returns true if one of the sockets in the answer is our own.
bool ask_for_own(const Question& question) {
  const base::UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket || send(socket.get(), &question, sizeof question, 0) != sizeof question) return true;
  const bool is_list = (question.header.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
  alignas(nlmsghdr) std::array<char, kReplyBytes> answer;
  while (true) {
    const ssize_t got = recv(socket.get(), answer.data(), answer.size(), 0);
    if (got <= 0) return false;
    auto left = static_cast<std::size_t>(got);
    const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
    for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY) return false;  // the end, or an error
      if (is_own(*header)) return true;
    }
    if (!is_list) return false;
  }
}

}  // namespace

bool has_own_client(std::uint16_t port) {
  return ask_for_own(question_about_port(port));
}

bool is_own_client(int connection) {
  sockaddr_in client{};
  sockaddr_in server{};
  socklen_t size = sizeof client;
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&client), &size) != 0) return false;
  if (client.sin_family != AF_INET) return true;
  size = sizeof server;
  if (getsockname(connection, reinterpret_cast<sockaddr*>(&server), &size) != 0) return false;
  Question question = question_about_port(ntohs(server.sin_port));
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.what.id.idiag_sport = client.sin_port;
  question.what.id.idiag_src[0] = client.sin_addr.s_addr;
  question.what.id.idiag_dst[0] = server.sin_addr.s_addr;
  return ask_for_own(question);
}

}  // namespace score::shepherd
