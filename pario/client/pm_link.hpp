// Implements the PM side of a connection to a server. Read and Write are sent as messages, and the
// server reads or writes the caller's memory. Everything else stays on TCP.
//
// PM makes progress only while a thread calls it, so a thread that waits for a reply drives PM for
// all threads.
#pragma once

#include "pario/channel/endpoints.hpp"
#include "pario/channel/pipe.hpp"
#include "pario/core/volume_file.hpp"

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/uio.h>
#include <vector>

namespace score::pario {

// Reads $PARIO_TRANSPORT. If it is unset or empty, `transport` is unchanged. Returns false if the
// value is not "pm", "udp" or "tcp".
bool read_transport(Transport& transport);

class PmLink {
 public:
  // Sends an OpenChannel by TCP and returns its reply's body.
  class Exchange {
   public:
    virtual int open_channel(ChannelKind kind, std::uint64_t address, std::string& body) = 0;

   protected:
    ~Exchange() = default;
  };

  struct Arrived {
    Reply reply;
    std::string body;
  };

  // Opens the link. `fd`: the TCP connection after its handshake. With Usual only a server of this
  // node is reached by PM. Returns an errno value, or 0 and `made`, which is null if TCP must be
  // used. ETIMEDOUT: the server does not answer over UDP; ECONNRESET: it has closed the connection
  // in the meantime.
  static int open(int fd, Transport transport, Exchange& exchange, std::unique_ptr<PmLink>& made);
  ~PmLink();
  PmLink(const PmLink&) = delete;
  PmLink& operator=(const PmLink&) = delete;

  // Sends a Read or Write; `memory` has one piece per extent. It may be called by any thread.
  // ENOSPC: the request must go by TCP.
  int send(Request request, const std::vector<iovec>& memory);

  enum class News { Replies, Socket, Silent, Broken };

  // Waits for replies, or until `fd` is readable, for kSilenceMs at most. Only one thread may wait
  // at a time.
  News wait(int fd, std::vector<Arrived>& arrived);

 private:
  PmLink(EndpointPtr endpoint, int wake_fd, std::size_t least_bytes);

  int greet(int fd);
  News look(std::vector<Arrived>& arrived);
  // Waits under `lock`, which is released meanwhile. Returns true if `fd` is readable.
  bool rest(int fd, std::int64_t end_ms, std::unique_lock<std::mutex>& lock);
  bool take_replies(std::vector<Arrived>& arrived);
  void drop(std::uint32_t region);
  void drop_later();
  void stop_sleeping();

  std::mutex mutex_;  // protects all members below except wake_fd_
  EndpointPtr endpoint_;
  Pipe pipe_;
  std::string input_;
  std::map<std::uint64_t, std::uint32_t> regions_;  // by tag
  std::vector<std::uint32_t> dropped_;              // still in use by PM
  bool is_asleep_ = false;                          // a thread waits in poll()
  int wake_fd_;                                     // ends the wait in poll()
  std::size_t least_bytes_;                         // minimum of a request
};

}  // namespace score::pario
