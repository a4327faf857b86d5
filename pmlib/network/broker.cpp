#include "pmlib/network/broker.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pm {

namespace {

constexpr std::uint32_t kMaxContexts = 65536;
constexpr std::uint32_t kMaxDevices = 4;  // kMaxLinks

// Keeps the descriptors of one packet. Returns false if there were more than fit.
bool take_descriptors(msghdr& message, std::vector<int>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      into.push_back(fd);
    }
  }
  return (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0;
}

int receive_reply(int socket, BrokerReply& reply, std::vector<int>& descriptors) {
  iovec block{&reply, sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kBrokerFds * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  if (n == 0) return ENETDOWN;
  const bool is_whole = take_descriptors(message, descriptors);
  if (!is_whole) return EMFILE;  // the kernel drops descriptors that this process may not open
  return n == sizeof reply && reply.magic == kBrokerMagic ? 0 : EPROTO;
}

}  // namespace

BrokeredContext::~BrokeredContext() {
  for (const int fd : contexts) close(fd);
  for (const int fd : devices) close(fd);
}

int ask_broker(int socket, BrokeredContext& got) {
  const BrokerRequest request;
  ssize_t sent = 0;
  do {
    sent = send(socket, &request, sizeof request, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno == EPIPE || errno == ENOTCONN ? ENETDOWN : errno;
  for (;;) {
    BrokerReply reply;
    const std::size_t before = got.contexts.size();
    const int error = receive_reply(socket, reply, got.contexts);
    if (error != 0) return error;
    if (reply.error != 0) return reply.error;
    const std::size_t wanted = std::size_t{reply.contexts} + reply.devices;
    if (reply.contexts > kMaxContexts || reply.own >= reply.contexts ||
        reply.devices > kMaxDevices || got.contexts.size() > wanted ||
        got.contexts.size() == before) {
      return EPROTO;
    }
    if (got.contexts.size() < wanted) continue;
    got.own = reply.own;
    got.devices.assign(got.contexts.begin() + reply.contexts, got.contexts.end());
    got.contexts.resize(reply.contexts);
    return 0;
  }
}

}  // namespace score::pm
