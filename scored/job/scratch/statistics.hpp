#pragma once
// Reads the statistics of this node's server of a volume, as a client of it. It never waits,
// because the shepherd has other work. If the server does not answer, the request is repeated over
// a new connection.

#include "scored/job/scratch/statistics_exchange.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <optional>

namespace score::shepherd {

class ServerStatistics {
 public:
  // The handler receives nullopt if the last question was not answered.
  using Handler = std::function<void(const std::optional<pario::Statistics>&)>;

  // The loop and the volume must outlive this object. server: its index in the volume.
  ServerStatistics(EventLoop& loop, const pario::VolumeDescription& volume, std::uint32_t server,
                   Handler handler)
      : loop_(loop), volume_(volume), server_(server), handler_(std::move(handler)) {}

  ~ServerStatistics() { close(); }

  ServerStatistics(const ServerStatistics&) = delete;
  ServerStatistics& operator=(const ServerStatistics&) = delete;

  // Sends a question. Call it periodically; the previous question should have been answered by
  // then.
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
