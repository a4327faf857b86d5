#include "scored/node/link/launcher_link.hpp"

#include "base/limits.hpp"
#include "scored/privileged/rings/protocol.hpp"

#include <algorithm>

namespace score::node {

constexpr Duration kRestartTime = std::chrono::seconds{3};  // time in which a launcher restarts

static_assert(limits::kMaxJobsPerNode <= launcher::kMaxShepherds);

LauncherLink::LauncherLink(const std::string& directory, TaskGroup& tasks,
                           const asio::any_io_executor& io)
    : launcher_("launcher", directory + "/launcher.sock", tasks, io),
      rings_("opener of Ethernet rings", directory + "/rings.sock", tasks, io) {}

void LauncherLink::close() {
  launcher_.close();
  rings_.close();
}

asio::awaitable<Result<LaunchedShepherd>> LauncherLink::launch(LaunchOrder order,
                                                               std::vector<UniqueFd> places) {
  if (order.denied.size() >= launcher::kDeniedBytes) {
    co_return fail(Errc::TooLarge, "the list of denied devices is too long");
  }
  launcher::StartRequest request;
  request.attempt = order.attempt.value();
  request.user = order.user.value();
  request.low_priority = order.low_priority ? 1 : 0;
  request.scratch = order.scratch ? 1 : 0;
  request.checkpoint = order.checkpoint;
  std::ranges::copy(order.denied, std::begin(request.denied));
  std::vector<int> fds;
  for (const auto& place : places) fds.push_back(place.get());
  [[maybe_unused]] const bool is_there = co_await launcher_.reach(kRestartTime);
  auto answered = co_await launcher_.ask(order.attempt, std::as_bytes(std::span(&request, 1)), fds);
  if (!answered) co_return answered.error();
  LaunchedShepherd launched{answered->reply.shepherd_pid, answered->reply.group};
  co_return launched;
}

asio::awaitable<Result<UniqueFd>> LauncherLink::open_ring(AttemptId attempt, RingPlace place) {
  rings::RingRequest request;
  request.attempt = attempt.value();
  request.key = place.key;
  request.rank = place.rank;
  request.channel = place.channel;
  auto answered = co_await rings_.ask(attempt, std::as_bytes(std::span(&request, 1)), {});
  if (!answered) co_return answered.error();
  if (answered->fds.size() != 1) co_return fail(Errc::Malformed, "the reply contains no ring");
  co_return std::move(answered->fds.front());
}

}  // namespace score::node
