#pragma once
// Asks this node's server of a volume what it counts, as a client of it, without ever waiting: the
// shepherd has other things to do. A server that does not answer is asked again over a new
// connection.

#include "scored/job/scratch/statistics_exchange.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <optional>

namespace score::shepherd {

class ServerStatistics {
 public:
  // nullopt: the last question was not answered.
  using Handler = std::function<void(const std::optional<pario::Statistics>&)>;

  // Both outlive it. server: its index in the volume.
  ServerStatistics(EventLoop& loop, const pario::VolumeDescription& volume, std::uint32_t server,
                   Handler handler)
      : loop_(loop), volume_(volume), server_(server), handler_(std::move(handler)) {}

  ~ServerStatistics() { close(); }

  ServerStatistics(const ServerStatistics&) = delete;
  ServerStatistics& operator=(const ServerStatistics&) = delete;

  // Call it now and then: what was asked before should have been answered by then.
  void ask();

 private:
  void connect();
  void close();
  void fail();
  void on_ready();
  bool send(std::string_view bytes);

  EventLoop& loop_;
  const pario::VolumeDescription& volume_;
  std::uint32_t server_;
  Handler handler_;
  base::UniqueFd socket_;
  std::optional<StatisticsExchange> exchange_;
};

}  // namespace score::shepherd
