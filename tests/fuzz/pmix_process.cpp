// This fuzz target sends bytes over the socket from a PMIx server to its shepherd. The server runs
// next to the tasks as their user, so it may send anything, frames or not.
//
// These rules must always hold: the shepherd accepts nothing after the end, which it reports once,
// and a task counts as initialised only if the server reported it.

#include "scored/job/pmix/pmix_process.hpp"

#include "base/assert.hpp"
#include "base/os/fd.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <sys/socket.h>

namespace {

using namespace score;

class Harness {
 public:
  void hear(std::string_view bytes) {
    auto pair = base::make_socket_pair(SOCK_STREAM);
    SCORE_ASSERT(pair, "socket pair");
    SCORE_ASSERT(process_.attach(std::move(pair->first)), "attach");
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPiece))) {
      if (!base::write_all(pair->second.get(), bytes.substr(0, kPiece))) break;
      for (std::uint32_t task = 0; task < 4; ++task) {
        SCORE_ASSERT(!process_.was_initialised(task) || initialised_.contains(task));
      }
    }
    pair->second.reset();
    std::ignore = process_.was_initialised(0);
    SCORE_ASSERT(has_ended_ && !process_.is_running(), "the end was not noticed");
  }

 private:
  static constexpr std::size_t kPiece = 4096;

  shepherd::PmixProcess::Handlers handlers() {
    const auto alive = [this](const auto&) { SCORE_ASSERT(!has_ended_, "heard after the end"); };
    shepherd::PmixProcess::Handlers handlers;
    handlers.fence = alive;
    handlers.abort = alive;
    handlers.relay = alive;
    handlers.spawn = alive;
    handlers.world_ready = [this](std::uint32_t, const std::string&) {
      SCORE_ASSERT(!has_ended_, "heard after the end");
    };
    handlers.initialised = [this](std::uint32_t task) { initialised_.insert(task); };
    handlers.failed = [this](const std::string&) {
      SCORE_ASSERT(!has_ended_, "ended twice");
      has_ended_ = true;
    };
    handlers.ended = [this] {
      SCORE_ASSERT(!has_ended_, "ended twice");
      has_ended_ = true;
    };
    return handlers;
  }

  shepherd::EventLoop loop_ = std::move(*shepherd::EventLoop::create());
  std::set<std::uint32_t> initialised_;
  bool has_ended_ = false;
  shepherd::PmixProcess process_{loop_, handlers()};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  harness.hear({reinterpret_cast<const char*>(data), size});
  return 0;
}
