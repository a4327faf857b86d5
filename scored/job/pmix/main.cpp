// scored-pmix serves PMIx to the tasks of one job on one node. It runs as the job's user, in the
// cgroup of the tasks, if the job uses PMIx (scored/job/waiting/waiting_server.hpp). Descriptor 3
// is a socket to the shepherd, with the frames of proto/shepherd.proto; the process ends when the
// socket does. Descriptor 4 is the socket at which clients connect.
//
// This is a separate process because libpmix brings a thread and libraries that a shepherd, linked
// statically and started for every job, must not carry. A failure here costs one error message
// instead of the shepherd.

#include "base/exit_codes.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "scored/job/plan/plan.hpp"
#include "scored/job/pmix/listener.hpp"
#include "scored/job/pmix/server.hpp"
#include "scored/job/waiting/waiting_server.hpp"

#include <array>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

namespace base = score::base;
namespace proto = score::proto;
namespace wire = score::wire;

constexpr int kShepherdFd = score::shepherd::kServerSocketFd;
constexpr std::size_t kReadBytes = 64UL * 1024;

// The shepherd always reads, so a blocking write here never waits for long.
void send_frame(proto::FrameType type, std::string_view payload) {
  static std::mutex one_frame_a_time;
  const std::lock_guard lock(one_frame_a_time);
  if (!base::write_all(kShepherdFd, proto::encode_frame_bytes(type, payload))) _exit(0);
}

template <class Message>
void send(const Message& message) {
  send_frame(proto::frame_type<Message>(), message.SerializeAsString());
}

int fail(std::string_view reason) {
  wire::PmixFailed failed;
  failed.set_reason(std::string(reason));
  send(failed);
  return 1;
}

// Waits until the shepherd sends data. Requests of libpmix and of other nodes are handled
// meanwhile.
void wait_for_shepherd() {
  constexpr int kTurnMs = 1000;
  static bool has_pending = false;
  while (true) {
    const int wake = score::pmix::wake_descriptor();  // -1 before the server runs
    std::array<pollfd, 2> ready{{{kShepherdFd, POLLIN, 0}, {wake, POLLIN, 0}}};
    const int count = poll(ready.data(), ready.size(), has_pending ? kTurnMs : -1);
    if (count < 0 && errno != EINTR) return;
    if (wake >= 0) has_pending = score::pmix::take_turn();
    if (count > 0 && ready[0].revents != 0) return;
  }
}

// Returns the shepherd's next frame; nullopt at the end of the stream.
std::optional<proto::InFrame> next_frame(proto::FrameReader& reader) {
  static std::array<char, kReadBytes> buffer;
  while (true) {
    auto frame = reader.next(proto::Role::Shepherd);
    if (!frame) {
      base::log_error("Cannot read from the shepherd", base::kv("err", frame.error()));
      return std::nullopt;
    }
    if (*frame) return std::move(*frame);
    wait_for_shepherd();
    const ssize_t got = read(kShepherdFd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    reader.feed({buffer.data(), static_cast<std::size_t>(got)});
  }
}

// The message comes from the shepherd, which has made a plan of it.
void add_world(const std::string& payload) {
  wire::PmixWorld message;
  if (!message.ParseFromString(payload)) return;
  const auto plan = score::shepherd::parse_plan(message.plan());
  if (plan) score::pmix::add_world(*plan);
}

void on_frame(const proto::InFrame& frame) {
  if (frame.type == proto::FrameType::JobRelay) {
    wire::JobRelay relay;
    if (relay.ParseFromString(frame.payload)) {
      score::pmix::receive_relay(relay.node_index(), relay.message());
    }
    return;
  }
  if (frame.type == proto::FrameType::PmixWorld) return add_world(frame.payload);
  if (frame.type == proto::FrameType::PmixSpawned) {
    wire::PmixSpawned spawned;
    if (spawned.ParseFromString(frame.payload)) {
      score::pmix::spawn_done(spawned.token(), spawned.world());
    }
    return;
  }
  if (frame.type != proto::FrameType::PmixFenceDone) return;
  wire::PmixFenceDone done;
  if (!done.ParseFromString(frame.payload)) return;
  score::pmix::complete_fence(done.sequence(), std::move(*done.mutable_data()));
}

int serve() {
  proto::FrameReader reader;
  const auto first = next_frame(reader);
  wire::PmixStart start;
  if (!first || first->type != proto::FrameType::PmixStart ||
      !start.ParseFromString(first->payload)) {
    return fail("no plan");
  }
  const auto plan = score::shepherd::parse_plan(start.plan());
  if (!plan) return fail(plan.error().message());
  auto started = score::pmix::start_server(*plan, start.directory(), send_frame);
  if (!started) return fail(started.error().message());
  score::pmix::admit_clients();
  while (const auto frame = next_frame(reader)) on_frame(*frame);
  return 0;
}

}  // namespace

// The tasks belong to the same user. Where others may read the program, exec leaves it dumpable.
int main(int argc, char**) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (argc != 1) {
    base::log_error("usage: scored-pmix (started by scored-shepherd)");
    return score::kExitError;
  }
  score::pmix::adopt_listener(score::shepherd::kServerListenerFd);
  for (const int fd : {kShepherdFd, score::shepherd::kServerListenerFd}) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  signal(SIGPIPE, SIG_IGN);
  try {
    const int code = serve();
    std::quick_exit(code);  // ends libpmix's thread; the shepherd removes its files
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
