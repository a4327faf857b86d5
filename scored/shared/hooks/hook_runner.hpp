#pragma once
// HookRunner has scored-hooks run a hook of the site, and waits for it without blocking. See
// scored/privileged/hooks/protocol.hpp and docs/adr/0118.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "scored/privileged/hooks/protocol.hpp"
#include "scored/shared/config/hooks_config.hpp"

#include <memory>
#include <string>

namespace score {

// A HookHandle lets others end a hook that is running. It may be used before and after that, too.
class HookHandle {
 public:
  // Has the hook killed. The run then ends with Errc::Cancelled.
  void cancel();

  [[nodiscard]] bool is_cancelled() const { return is_cancelled_; }

 private:
  friend class HookRunner;

  int socket_ = -1;  // while the hook runs
  bool is_cancelled_ = false;
};

struct HookEnd {
  bool is_absent = false;  // there is no such hook in the configuration that scored-hooks reads
  std::string fault;       // one line; empty: the hook has passed
  std::string answer;      // of a submit hook
};

class HookRunner {
 public:
  struct Place {
    std::string config;  // file of the daemon's own configuration
    std::string socket;  // of scored-hooks; empty: it is started as a child, with `config`
  };

  // `clock` must outlive the runs.
  HookRunner(Clock& clock, Place place);

  // Runs the hook that the request names. `timeout` is the hook's own limit, which scored-hooks
  // enforces; the run itself fails a while later. `handle` may be null. Errors: Cancelled; why
  // scored-hooks did not answer.
  asio::awaitable<Result<HookEnd>> run(hooks::HookRequest request, Duration timeout,
                                       std::shared_ptr<HookHandle> handle);
  // Runs the submit hook with this text as its input.
  asio::awaitable<Result<HookEnd>> submit(std::string input, Duration timeout);

 private:
  struct Running {
    UniqueFd socket;
    SpawnedProcess child;  // pid -1: there is none
    UniqueFd answer;       // file of a submit hook
  };

  [[nodiscard]] Result<Running> connect() const;
  [[nodiscard]] Result<Running> start(const std::string* submit_input) const;
  asio::awaitable<Result<HookEnd>> finish(Running running, Duration timeout,
                                          std::shared_ptr<HookHandle> handle);
  asio::awaitable<Result<hooks::HookReply>> read_reply(int socket);
  asio::awaitable<void> reap_child(SpawnedProcess child);

  Clock& clock_;
  Place place_;
};

}  // namespace score
