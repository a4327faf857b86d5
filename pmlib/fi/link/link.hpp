// Connects a process to its peers: a PM endpoint, and the transfers that the provider adds to it.
// All endpoints of a process in a job share one link and are distinguished by ports; without a job
// each domain makes its own link.
//
// Small messages go as PM messages, split if they do not fit one. Larger ones are announced; the
// receiver answers with registered memory once it knows where the bytes go, and the sender writes
// them there. Both sides use few of PM's regions at a time: each transfer holds one at the receiver
// (Inbound) and one at the sender (Outbound), each from a quota of its own. So a transfer that has
// its go-ahead never waits for a different one.
//
// All functions must be called with the lock held, unless a comment says otherwise.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/dropped_regions.hpp"
#include "pmlib/fi/link/lock.hpp"
#include "pmlib/fi/link/receiver.hpp"
#include "pmlib/fi/link/requests.hpp"
#include "pmlib/fi/link/rest.hpp"
#include "pmlib/fi/link/sender.hpp"
#include "pmlib/fi/link/silence.hpp"
#include "pmlib/fi/link/transfers.hpp"
#include "pmlib/fi/link/wait_set.hpp"
#include "pmlib/fi/peers/directory.hpp"
#include "pmlib/fi/peers/name.hpp"
#include "pmlib/fi/peers/peers.hpp"

#include <cstdint>
#include <memory>

namespace score::pm::fi {

class Link final : public LinkLock, private DeathListener {
 public:
  // Joins the job that this process was given. Without a job, opens a UDP socket that peers reach
  // by the address and port of `own` (0 = chosen; a different port if that one is taken). Must be
  // called without any lock.
  static std::shared_ptr<Link> open(const Name& own, int& error);
  // Returns the name of a link that open() would make, as far as it is known before. `ip` and
  // `udp_port`, both in network order, are those of a socket; 0 = chosen.
  static Name expected_name(std::uint32_t ip, std::uint16_t udp_port);
  // Closes the kept link at the end of the process; see open_job().
  static void forget_kept();
  // Makes a link over an endpoint of a job that the caller has opened. `shares_host` is true if
  // other ranks are known to be on this host.
  static std::shared_ptr<Link> over(std::unique_ptr<pm::Endpoint> endpoint, int& error,
                                    bool shares_host = false);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Peers& peers() { return peers_; }

  WaitSet& wait_set() { return wait_set_; }

  Silence& silence() { return silence_; }

  Requests& requests() { return requests_; }

  Sender& sender() { return sender_; }

  Transfers& transfers() { return transfers_; }

  Receiver& receiver() { return receiver_; }

  Rest& rest() { return rest_; }

  // Receives everything that has arrived and sends everything that can be sent. Returns whether
  // anything happened.
  bool progress();
  // Prepares for a sleep on the wait set. Returns false if there is work to do.
  bool prepare_to_wait();
  // Returns true if everything that was accepted has been sent and acknowledged.
  bool is_drained() const;

  // Returns the monotonic time.
  static std::uint64_t now_us() { return now_ns() / 1000; }

 private:
  Link(std::unique_ptr<pm::Endpoint> pm, const Name& name, Directory* directory,
       bool has_near_ranks);
  static std::shared_ptr<Link> open_job(int& error);
  static std::shared_ptr<Link> open_own(const Name& own, int& error);
  [[gnu::cold]] void on_death(std::uint32_t peer) override;

  bool has_late_work() const {
    return sender_.has_queued() || transfers_.has_any() || peers_.has_unready();
  }

  [[gnu::noinline]] bool do_late_work();

  std::unique_ptr<pm::Endpoint> pm_;
  Peers peers_;
  WaitSet wait_set_;
  Silence silence_;
  DroppedRegions regions_;
  Requests requests_;
  Sender sender_;
  Transfers transfers_;
  Receiver receiver_;
  Rest rest_;
};

}  // namespace score::pm::fi
