// Writes shares and reservations as JSON; scout/JSON.md describes the fields.
#pragma once

#include "base/text/json_writer.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"

namespace score::proto {

[[nodiscard]] double core_hours_of(const wire::ShareRow& row);
// Writes the document scored.shares/1.
void write_shares(JsonWriter& json, const wire::ShareList& list);

[[nodiscard]] bool is_active(const wire::Reservation& row, WallTime now);
// Returns true if no one may use the nodes.
[[nodiscard]] bool is_maintenance(const wire::Reservation& row);
// Writes the document scored.reservations/1.
void write_reservations(JsonWriter& json, const wire::ReservationList& list, WallTime now);

}  // namespace score::proto
