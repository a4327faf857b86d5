// This module is tested by reservations_test.cpp of scout, test_shares.py and test_api.py.
// Writes shares and reservations as JSON.
#include "proto/documents/pool_documents.hpp"

#include "proto/documents/words.hpp"

namespace score::proto {

double core_hours_of(const wire::ShareRow& row) {
  constexpr double kHourNs = 3.6e12;
  return static_cast<double>(row.core_ns()) / kHourNs;
}

namespace {

void write_share(JsonWriter& json, const wire::ShareRow& row) {
  json.begin_object();
  json.field("account", row.account());
  if (!row.user_name().empty()) json.field("user", row.user_name()).field("uid", row.user());
  json.field("share", row.share()).field("used", row.used());
  json.field("core_hours", core_hours_of(row)).field("factor", row.factor());
  json.field("jobs", row.jobs()).field("running_jobs", row.running_jobs());
  json.field("nodes", row.nodes()).field("memory_bytes", row.memory_bytes());
  json.list("limits", row.limits()).end_object();
}

}  // namespace

void write_shares(JsonWriter& json, const wire::ShareList& list) {
  json.begin_object().field("schema", "scored.shares/1");
  json.field("half_life_s", to_seconds(list.half_life_ns()));
  json.key("shares").begin_array();
  for (const auto& row : list.rows()) write_share(json, row);
  json.end_array().end_object();
}

bool is_active(const wire::Reservation& row, WallTime now) {
  return row.start_wall_ns() <= now.time_since_epoch().count();
}

bool is_maintenance(const wire::Reservation& row) {
  return row.users().empty() && row.accounts().empty();
}

void write_reservations(JsonWriter& json, const wire::ReservationList& list, WallTime now) {
  json.begin_object().field("schema", "scored.reservations/1");
  json.key("reservations").begin_array();
  for (const auto& row : list.reservations()) {
    json.begin_object().field("reservation", row.name()).list("nodes", row.nodes());
    write_moment(json, "start_unix_s", row.start_wall_ns());
    write_moment(json, "end_unix_s", row.end_wall_ns());
    json.field("active", is_active(row, now)).field("maintenance", is_maintenance(row));
    json.list("users", row.users()).list("accounts", row.accounts());
    json.field("reason", row.reason()).end_object();
  }
  json.end_array().end_object();
}

}  // namespace score::proto
