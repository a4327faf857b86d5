#pragma once
// Reservations for the rest of the head: checks commands and submissions, keeps the cluster's
// calendar in step with the wall clock, and forgets what has ended. Storing is the caller's, except
// that what has ended leaves the store.

#include "base/async/alarm.hpp"
#include "base/model/model.hpp"
#include "proto/client.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/event_feed.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/reservations/reservation_book.hpp"
#include "scored/head/store/commit_log.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace score::head {

class ReservationDesk {
 public:
  struct Parts {  // all outlive it
    ClusterRunner& runner;
    const HeadConfig& config;
    const NodeLinks& links;
    Users& users;
    CommitLog& commits;
    EventFeed& feed;
    Alarm& alarm;
  };

  explicit ReservationDesk(Parts parts) : parts_(parts) {}

  // What is stored: name -> pack_booking(). Once, after nodes and jobs are there.
  void restore(const std::map<std::string, std::string>& stored);

  // ---- commands
  [[nodiscard]] std::string free_name() { return book_.free_name(); }

  // What a command comes to now: with its start and the numbers of its users. ends_jobs: jobs that
  // may still be there at its start do not matter. Errors: those of read_booking() and
  // ReservationBook::check(), NotFound (nodes, users, accounts), Busy (jobs are in the way).
  [[nodiscard]] Result<Booking> plan(const wire::Reservation& wanted, bool ends_jobs);
  // As plan() gave it.
  void make(const Booking& booking);
  // Errors: NotFound.
  [[nodiscard]] Status check_removal(std::string_view name) const;
  void remove(std::string_view name);

  // ---- jobs
  // Whether the user may submit a job that asks for the reservation. Errors: NotFound, Denied,
  // TooLarge.
  [[nodiscard]] Status admit(UserId user, const ResourceRequest& request) const;

  // By start. On a private cluster a user sees only his own name. The reply has no tag.
  [[nodiscard]] wire::ReservationList list(const Peer& peer) const;

  // ---- called in turn
  void tick();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  [[nodiscard]] Status find_users(Booking& booking);
  [[nodiscard]] Result<gang::Reservation> for_cluster(const Booking& booking) const;
  void tell_cluster();
  void forget(const Booking& booking);

  Parts parts_;
  ReservationBook book_;
  Duration offset_{0};  // of the wall clock, as the cluster's calendar has it
};

}  // namespace score::head
