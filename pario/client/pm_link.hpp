// The PM side of a connection to a server: Read and Write go as messages, the server reads or
// writes the caller's memory. Everything else stays on TCP.
//
// PM works while someone is in it: whoever waits for a reply drives it for all.
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

// What $PARIO_TRANSPORT asks for; unset or empty: nothing, and `transport` stays. False: it is not
// "pm", "udp" or "tcp".
bool read_transport(Transport& transport);

class PmLink {
 public:
  // Sends an OpenChannel by TCP and gives its reply's body.
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

  // `fd`: the TCP connection after its handshake. With Usual only a server of this node is reached
  // by PM. An errno value, or 0 and `made`, which is null if TCP is to be used. ETIMEDOUT: the
  // server does not answer over UDP; ECONNRESET: it has closed the connection meanwhile.
  static int open(int fd, Transport transport, Exchange& exchange, std::unique_ptr<PmLink>& made);
  ~PmLink();
  PmLink(const PmLink&) = delete;
  PmLink& operator=(const PmLink&) = delete;

  // Of a Read or Write; `memory` is that of its extents, one piece each. Any thread. ENOSPC: it
  // must go by TCP.
  int send(Request request, const std::vector<iovec>& memory);

  enum class News { Replies, Socket, Silent, Broken };

  // Waits for replies, or until `fd` can be read, for kSilenceMs at most. One thread at a time.
  News wait(int fd, std::vector<Arrived>& arrived);

 private:
  PmLink(EndpointPtr endpoint, int wake_fd, std::size_t least_bytes);

  int greet(int fd);
  News look(std::vector<Arrived>& arrived);
  // Under `lock`, which is free meanwhile. True: `fd` can be read.
  bool rest(int fd, std::int64_t end_ms, std::unique_lock<std::mutex>& lock);
  bool take_replies(std::vector<Arrived>& arrived);
  void drop(std::uint32_t region);
  void drop_later();
  void stop_sleeping();

  std::mutex mutex_;  // of all below but wake_fd_
  EndpointPtr endpoint_;
  Pipe pipe_;
  std::string input_;
  std::map<std::uint64_t, std::uint32_t> regions_;  // by tag
  std::vector<std::uint32_t> dropped_;              // still in use by PM
  bool is_asleep_ = false;                          // a thread waits in poll()
  int wake_fd_;                                     // ends that
  std::size_t least_bytes_;                         // of a request
};

}  // namespace score::pario
