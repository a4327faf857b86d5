#include "scored/node/attempts/volume_sweeps.hpp"

#include "base/os/log.hpp"
#include "base/text.hpp"

#include <filesystem>
#include <unistd.h>

namespace score::node {

namespace {

namespace fs = std::filesystem;

constexpr int kTries = 20;  // the launcher may be restarting, or a process may still be ending
constexpr Duration kPause = std::chrono::milliseconds{500};
constexpr Duration kMostWait = std::chrono::seconds{8};  // well below the deadline of a launch
constexpr Duration kCheckInterval = std::chrono::milliseconds{10};

// Makes an id for the helper, because launchers know shepherds by their attempts. Jobs are counted
// from 1, so no job has these ids.
AttemptId sweep_id(UserId user) {
  return AttemptId{UINT64_MAX - user.value()};
}

}  // namespace

void VolumeSweeps::sweep_all() {
  if (path_.empty()) return;
  std::error_code error;
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    const auto user = parse_number<std::uint32_t>(at->path().filename().native());
    std::error_code ignored;
    if (user && at->is_directory(ignored) && !at->is_symlink(ignored)) sweep(UserId(*user));
  }
}

void VolumeSweeps::sweep(UserId user) {
  if (!users_.insert(user).second) {
    again_.insert(user);
    return;
  }
  parts_.tasks.spawn("remove what killed jobs left", run(user));
}

asio::awaitable<void> VolumeSweeps::run(UserId user) {
  std::string why;
  for (int tries = 0; tries < kTries; ++tries) {
    again_.erase(user);
    const auto done = co_await run_once(user);
    const bool is_over = done && *done && !again_.contains(user);
    if (is_over) break;
    if (!done) why = done.error().message();
    if (tries + 1 == kTries) {
      log_error("Cannot remove what killed jobs left", kv("user", user), kv("err", why));
    }
    co_await parts_.clock.sleep_for(kPause);
  }
  users_.erase(user);
}

asio::awaitable<Result<bool>> VolumeSweeps::run_once(UserId user) {
  auto connection = co_await shepherds_.start_helper(sweep_id(user), user);
  if (!connection) co_return connection.error();
  wire::ShepherdSweep order;
  order.set_path(path_);
  send(**connection, order);
  auto frame = co_await (*connection)->read(proto::Role::Shepherd);
  (*connection)->close();
  if (!frame) co_return frame.error();
  auto swept = proto::parse<wire::ShepherdSwept>(*frame);
  if (!swept) co_return swept.error();
  if (swept->removed() > 0) {
    log_notice("Removed what killed jobs left of their volumes", kv("user", user),
               kv("volumes", swept->removed()));
  }
  if (swept->left().empty()) co_return true;
  co_return fail(Errc::Busy, "{}", escape_terminal(swept->left(), 400));
}

asio::awaitable<void> VolumeSweeps::wait() {
  const TimePoint give_up = parts_.clock.now() + kMostWait;
  while (is_busy() && parts_.clock.now() < give_up) co_await parts_.clock.sleep_for(kCheckInterval);
}

}  // namespace score::node
