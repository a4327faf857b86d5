// This fuzz target is the node daemon of scored-rings: it connects with a list of packets, each a
// length and bytes. The main program runs for one connection; accept4() ends it with an exception.
// Rings is replaced: it requires that the request was checked, and opens a pipe instead of a ring.
#include "scored/privileged/rings/rings.hpp"

#include "base/assert.hpp"
#include "scored/privileged/rings/ring_bounds.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

int rings_main(int argc, char** argv);

namespace {

using score::launcher::StartReply;
using score::rings::RingFailure;
using score::rings::RingRequest;

struct EndOfTest {};

int g_connection = -1;

bool is_answered_well(const RingRequest& request) {
  return request.attempt % 2 == 0;
}

bool is_good(const RingRequest& request) {
  return request.attempt != 0 && request.channel <= 0xffff;
}

// Receives an answer with at most one descriptor; returns true if there was one.
bool receive(int peer, StartReply& reply) {
  iovec block{.iov_base = &reply, .iov_len = sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = recvmsg(peer, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  // The kernel reports first that packets were left unread.
  if (got < 0 && errno == ECONNRESET)
    got = recvmsg(peer, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  SCORE_ASSERT(got == sizeof reply, "no answer");
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part == nullptr) return false;
  SCORE_ASSERT(part->cmsg_len == CMSG_LEN(sizeof(int)), "more than one descriptor");
  int ring = -1;
  memcpy(&ring, CMSG_DATA(part), sizeof ring);
  close(ring);
  return true;
}

void check_answers(int peer, const std::vector<RingRequest>& requests) {
  for (const RingRequest& request : requests) {
    StartReply reply;
    const bool has_ring = receive(peer, reply);
    SCORE_ASSERT(reply.attempt == request.attempt);
    SCORE_ASSERT(has_ring == (is_good(request) && is_answered_well(request)));
    SCORE_ASSERT(has_ring == (reply.error == 0));
  }
  char byte = 0;
  SCORE_ASSERT(recv(peer, &byte, 1, MSG_DONTWAIT) <= 0, "an answer to a malformed packet");
}

// The directory is removed when the process ends.
struct Directory {
  Directory() {
    char pattern[] = "/tmp/score_fuzz_XXXXXX";
    SCORE_ASSERT(mkdtemp(pattern) != nullptr);
    path = pattern;
  }

  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  ~Directory() {
    unlink((path + "/rings.sock").c_str());
    rmdir(path.c_str());
  }

  std::string path;
};

void run_program() {
  static Directory directory;
  std::string owners = std::to_string(geteuid()) + "," + std::to_string(getppid());
  char name[] = "scored-rings";
  char interface[] = "none";
  char* argv[] = {name, interface, directory.path.data(), owners.data(), nullptr};
  try {
    rings_main(4, argv);
    SCORE_ASSERT(false, "it has ended before a connection");
  } catch (const EndOfTest&) {
  }
}

}  // namespace

extern "C" int accept_fuzzed(int listener, sockaddr*, socklen_t*, int) {
  if (g_connection >= 0) return std::exchange(g_connection, -1);
  close(listener);
  throw EndOfTest();
}

namespace score::rings {

Rings::~Rings() = default;

int Rings::open(const RingRequest& request, RingFailure& failure) {
  SCORE_ASSERT(is_good(request), "a request that was not checked");
  if (!is_answered_well(request)) return fail(failure, EPERM, "open a ring");
  return memfd_create("ring", MFD_CLOEXEC);
}

int fail(RingFailure& failure, int error, const char* step) {
  failure.error = error;
  std::snprintf(failure.step, sizeof failure.step, "%s", step);
  return -1;
}

}  // namespace score::rings

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  int ends[2];
  SCORE_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  std::span<const std::uint8_t> rest(data, size);
  std::vector<RingRequest> requests;
  bool is_sound = true;
  for (int packets = 0; rest.size() > 1 && packets < 8; ++packets) {
    const std::size_t length = std::min<std::size_t>(rest[0], rest.size() - 1);
    const auto packet = rest.subspan(1, length);
    rest = rest.subspan(1 + length);
    if (packet.empty() || send(ends[0], packet.data(), length, MSG_DONTWAIT) < 0) continue;
    RingRequest request;
    is_sound = is_sound && length == sizeof request;
    if (is_sound) memcpy(&request, packet.data(), sizeof request);
    is_sound = is_sound && request.magic == score::rings::kMagic &&
               request.version == score::rings::kVersion;
    if (is_sound) requests.push_back(request);
  }
  shutdown(ends[0], SHUT_WR);
  g_connection = ends[1];
  run_program();
  check_answers(ends[0], requests);
  close(ends[0]);
  return 0;
}
