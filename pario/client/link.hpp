// The connection to one server of a volume, for many threads. There is no thread of its own:
// one of those that wait for a reply reads the socket, wakes the others when theirs has come, and
// leaves the reading to one of them when it has its own.
//
// A connection that breaks is made again for some seconds, and the requests in flight are sent
// again: a server that was killed and restarted has everything that it acknowledged. What it
// carried out without a reply is carried out twice where that makes no difference; changes of names
// have a number, by which the server knows them again (Once).
#pragma once

#include "pario/client/direct.hpp"
#include "pario/client/pm_link.hpp"
#include "pario/client/socket_calls.hpp"
#include "pario/core/volume_file.hpp"

#include <array>
#include <bitset>
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
  bool has_slot = false;                      // of the link
  std::condition_variable* waiter = nullptr;  // of the thread in finish()
  unsigned generation = 0;                    // of the connection by which it was sent
  unsigned tries = 0;
  std::int64_t since_ms = 0;
};

class Link final : private PmLink::Exchange {
 public:
  static constexpr int kReconnectSeconds = 10;
  static constexpr std::int64_t kMostTryMs = 20'000;

  // `volume` must outlive this. The link is to the server of part `server`, or to that of its copy.
  Link(const VolumeDescription& volume, std::uint32_t server, Transport transport);

  // Of a server to another one, by TCP.
  struct Peer {
    int reconnect_seconds = 1;
    bool has_copy = false;  // false: to this server and no other
  };

  Link(const VolumeDescription& volume, std::uint32_t server, const Peer& peer);

  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Connects now, to report errors early: EACCES for a wrong key, else why it failed.
  int open();
  // Sends; waits while kClientWindow requests are in flight.
  void start(Call& call);
  // Waits for the reply. The error is in `call`.
  void finish(Call& call);
  // run_directly() may do something.
  bool is_near();
  // A Read or Write of data on this node, which takes no request. False: start() it.
  bool run_directly(Call& call);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void number(Call& call);
  void progress(Lock& lock);
  void hand_over();
  bool read_any();
  bool waits_for_ranks();
  bool is_patient();
  bool take_arrived(PmLink::Arrived& arrived);
  bool read_reply();
  bool read_data(Call& call, std::size_t bytes);
  void recover();
  void end_call(Call& call, int error);
  void fail_all(int error);
  bool send_again(unsigned generation);
  bool send_call(Call& call) const;
  int connect();
  int connect_within(int seconds);
  int shake_hands(int fd, std::uint32_t server) const;
  int open_channel(ChannelKind kind, std::uint64_t address, std::string& body) override;
  int exchange(const Request& request, std::string& body) const;
  int open_pm();
  void report_fallback(int error);
  void open_directory();
  int take_lease(FileId id, std::uint64_t bytes, std::uint64_t written);

  const VolumeDescription& volume_;
  std::uint32_t server_;
  int reconnect_seconds_ = kReconnectSeconds;
  std::int64_t most_try_ms_ = kMostTryMs;  // and some tries: then it is the request's fault
  bool has_copy_ = false;
  bool is_at_copy_ = false;   // the connection is to the server of the copy
  bool was_refused_ = false;  // that server does not lead
  std::mutex send_mutex_;     // taken before mutex_
  std::mutex mutex_;
  std::condition_variable room_;          // a request may be sent, or the socket has no reader
  std::map<std::uint64_t, Call*> calls_;  // by tag: sent or about to be sent
  std::size_t gathers_ = 0;               // of them: may wait for other ranks, so do not count
  int silences_ = 0;                      // since the last reply
  std::uint64_t next_tag_ = 1;
  std::uint64_t client_;                                  // see Once
  std::array<std::uint32_t, kClientWindow> sequences_{};  // of slots
  std::bitset<kClientWindow> used_slots_;
  bool is_reading_ = false;  // a thread reads the socket, or connects again
  unsigned generation_ = 0;  // 0: never connected
  int fd_ = -1;
  InputAhead input_;  // of fd_; the thread that reads has it
  Transport transport_;
  std::mutex direct_mutex_;
  std::shared_ptr<DirectFiles> direct_;  // null: the server is on another node
  std::unique_ptr<PmLink> pm_;           // null: everything goes by TCP. Changed under send_mutex_
};

}  // namespace score::pario
