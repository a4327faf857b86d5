// The connection to one server of a volume, for many threads. There is no thread of its own:
// whoever waits for a reply reads the socket, and hands replies of others to them.
//
// A connection that breaks is made again for some seconds, and the requests in flight are sent
// again: a server that was killed and restarted has everything that it acknowledged. A request that
// it carried out without a reply is then carried out twice, which matters only to exclusive
// creates, unlinks and renames: they can fail although the first one succeeded.
#pragma once

#include "pario/core/volume_file.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace score::pario {

// A request and what came of it. Lives until Link::finish() has returned.
struct Call {
  Request request;            // names: the caller's memory
  std::vector<iovec> memory;  // Write: the data; Read, ReadEntries: where data goes
  int error = 0;              // errno; EIO if the server cannot be reached
  Reply reply;
  std::string body;

 private:
  friend class Link;
  bool is_done = false;
  unsigned generation = 0;  // of the connection by which it was sent
  unsigned tries = 0;
  std::int64_t since_ms = 0;
};

class Link {
 public:
  static constexpr int kReconnectSeconds = 10;

  // `volume` must outlive this. The link is to the server of part `server`, or to that of its copy.
  Link(const VolumeDescription& volume, std::uint32_t server)
      : volume_(volume), server_(server), has_copy_(volume.replicas > 1) {}

  // To one server and no other.
  Link(const VolumeDescription& volume, std::uint32_t server, int reconnect_seconds)
      : volume_(volume), server_(server), reconnect_seconds_(reconnect_seconds) {}

  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Connects now, to report errors early: EACCES for a wrong key, else why it failed.
  int open();
  // Sends; waits while kClientWindow requests are in flight.
  void start(Call& call);
  // Waits for the reply. The error is in `call`.
  void finish(Call& call);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void progress(Lock& lock);
  bool read_reply();
  bool read_data(Call& call, std::size_t bytes);
  void recover();
  void fail_all(int error);
  bool send_again(unsigned generation);
  bool send_call(Call& call) const;
  int connect();
  int connect_within(int seconds);
  int shake_hands(int fd, std::uint32_t server) const;

  const VolumeDescription& volume_;
  std::uint32_t server_;
  int reconnect_seconds_ = kReconnectSeconds;
  bool has_copy_ = false;
  bool is_at_copy_ = false;   // the connection is to the server of the copy
  bool was_refused_ = false;  // that server does not lead
  std::mutex send_mutex_;     // taken before mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Call*> calls_;  // by tag: sent or about to be sent
  std::uint64_t next_tag_ = 1;
  bool is_reading_ = false;  // a thread reads the socket, or connects again
  unsigned generation_ = 0;  // 0: never connected
  int fd_ = -1;
};

}  // namespace score::pario
