#pragma once
// ReservationManager manages reservations for the rest of the head. It checks commands and
// submissions, keeps the cluster's calendar in step with the wall clock, and drops reservations
// that have ended. The caller stores reservations; only ended ones are removed from the store here.

#include "base/model/model.hpp"
#include "proto/client.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/reservations/reservation_registry.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace score::head {

class ReservationManager {
 public:
  // `head` must outlive the object.
  explicit ReservationManager(HeadContext& head) : head_(head) {}

  // Loads the stored reservations: name -> pack_booking(). Must be called once, when nodes and jobs
  // are known.
  void restore(const std::map<std::string, std::string>& stored);

  // ---- commands
  [[nodiscard]] std::string free_name() { return registry_.free_name(); }

  // Returns the reservation that a command would make now, with its start and the numbers of its
  // users. With `ends_jobs`, jobs that may still run at its start do not matter. Errors: those of
  // read_booking() and ReservationRegistry::check(), NotFound (nodes, users, accounts), Busy (jobs
  // are in the way).
  [[nodiscard]] Result<Booking> plan(const wire::Reservation& wanted, bool ends_jobs);
  // Makes a reservation that plan() returned.
  void make(const Booking& booking);
  // Errors: NotFound.
  [[nodiscard]] Status check_removal(std::string_view name) const;
  void remove(std::string_view name);

  // ---- jobs
  // Checks whether the user may submit a job that asks for the reservation. Errors: NotFound,
  // Denied, TooLarge.
  [[nodiscard]] Status admit(UserId user, const ResourceRequest& request) const;

  // Returns the reservations sorted by start. On a private cluster, users see only their own names.
  // The reply has no tag.
  [[nodiscard]] wire::ReservationList list(const Peer& peer) const;

  // ---- called in turn
  void tick();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  [[nodiscard]] Status find_users(Booking& booking);
  [[nodiscard]] Result<gang::Reservation> for_cluster(const Booking& booking) const;
  void update_calendar();
  void forget(const Booking& booking);

  HeadContext& head_;
  ReservationRegistry registry_;
  Duration offset_{0};  // wall clock minus the cluster's time, as in the cluster's calendar
};

}  // namespace score::head
