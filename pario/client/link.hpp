// Manages the connection to one server of a volume, for many threads. It has no thread of its own:
// one of the threads that wait for a reply reads the socket, wakes the others when their replies
// have arrived, and passes the reading to one of them when it has its own.
//
// A broken connection is established again for some seconds, and the requests in flight are sent
// again: a server that was killed and restarted has everything that it acknowledged. A request that
// it carried out without a reply is carried out twice if that makes no difference; changes of names
// have a number, by which the server recognises repetitions (Once).
#pragma once

#include "pario/client/direct.hpp"
#include "pario/client/pm_link.hpp"
#include "pario/client/socket_calls.hpp"
#include "pario/core/volume_file.hpp"

#include <array>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace score::pario {

// Holds a request and its result. It must live until Link::finish() has returned.
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
  std::condition_variable* waiter = nullptr;  // the thread in finish()
  unsigned generation = 0;                    // of the connection that sent it
  unsigned tries = 0;
  std::int64_t since_ms = 0;
};

class Link final : private PmLink::Exchange {
 public:
  static constexpr int kReconnectSeconds = 10;  // if there are replicas
  static constexpr std::int64_t kDeadMs = 1'000;
  static constexpr std::int64_t kMostTryMs = 20'000;

  // `volume` must outlive this object. The link is to the server of part `server`, or to that of
  // its copy.
  Link(const VolumeDescription& volume, std::uint32_t server, Transport transport);

  // Holds the options for a link from a server to a different one, by TCP.
  struct Peer {
    int reconnect_seconds = 1;
    bool has_copy = false;   // false: only this server is used
    bool remembers = false;  // that the server is dead; see kDeadMs
  };

  Link(const VolumeDescription& volume, std::uint32_t server, const Peer& peer);

  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Connects now, to report errors early: EACCES for a wrong key, otherwise the cause of the
  // failure. The link can be used nevertheless.
  int open();
  // Sends the request. Waits while kClientWindow requests are in flight.
  void start(Call& call);
  // Waits for the reply. The error is in `call`.
  void finish(Call& call);
  // Returns true if run_directly() may handle requests.
  bool is_near();

  // Returns true if the server of the part runs on this node.
  bool is_on_this_node() const { return is_here_; }

  // Requests fail if the server does not answer at once.
  void stop_waiting() { is_hurried_ = true; }

  // Handles a Read or Write of data on this node without a request. Returns false if start() must
  // be used.
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
  int connect(int timeout_ms);
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
  std::int64_t most_try_ms_ = kMostTryMs;  // after this and some tries the request itself is at
                                           // fault
  bool has_copy_ = false;
  // A server without a copy that could not be reached is remembered as dead. Requests to it fail at
  // once until this time; the first one after it tries to connect, for a short time.
  bool remembers_ = false;
  bool is_dead_ = false;  // these two need mutex_
  std::int64_t dead_until_ms_ = 0;
  std::atomic<bool> is_hurried_ = false;
  std::atomic<bool> is_here_ = false;
  bool is_at_copy_ = false;   // the connection is to the server of the copy
  bool was_refused_ = false;  // by that server, because it does not lead
  std::mutex send_mutex_;     // taken before mutex_
  std::mutex mutex_;
  std::condition_variable room_;          // a request may be sent, or the socket has no reader
  std::map<std::uint64_t, Call*> calls_;  // by tag: sent or about to be sent
  std::size_t gathers_ = 0;               // those in calls_ that may wait for other ranks
  int silences_ = 0;                      // since the last reply
  std::uint64_t next_tag_ = 1;
  std::uint64_t client_;                                  // see Once
  std::array<std::uint32_t, kClientWindow> sequences_{};  // of slots
  std::bitset<kClientWindow> used_slots_;
  bool is_reading_ = false;  // a thread reads the socket, or connects again
  unsigned generation_ = 0;  // 0: has never been connected
  int fd_ = -1;
  InputAhead input_;  // of fd_; the thread that reads has it
  Transport transport_;
  std::mutex direct_mutex_;
  std::shared_ptr<DirectFiles> direct_;  // null: the server is on a different node
  std::unique_ptr<PmLink> pm_;           // null: everything goes by TCP; changed under send_mutex_
};

}  // namespace score::pario
