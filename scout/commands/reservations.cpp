#include "scout/commands/reservations.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "proto/documents/pool_documents.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"
#include "scout/waits/wait_options.hpp"

#include <fmt/ranges.h>

namespace score::scout {

namespace {

using ReservationRow = wire::Reservation;

void add_words(google::protobuf::RepeatedPtrField<std::string>& out, const std::string& list) {
  if (list.empty()) return;
  for (const auto word : split(list, ',')) out.Add(std::string(trim(word)));
}

std::string nodes_of(const ReservationRow& row) {
  const std::vector<std::string> names(row.nodes().begin(), row.nodes().end());
  return compress_hostlist(names);
}

std::string whom(const ReservationRow& row) {
  if (proto::is_maintenance(row)) return "maintenance";
  std::string text = fmt::format("{}", fmt::join(row.users(), ","));
  for (const auto& account : row.accounts()) text += (text.empty() ? "@" : ",@") + account;
  return text;
}

}  // namespace

Result<wire::Reserve> make_reserve(const ReserveWords& words, WallTime now) {
  wire::Reserve request;
  wire::Reservation& out = *request.mutable_reservation();
  const auto names = expand_hostlist(words.nodes);
  if (!names) return names.error().with_context("node '{}'", escape_terminal(words.nodes, 80));
  for (const auto& name : *names) out.add_nodes(name);
  std::int64_t start = now.time_since_epoch().count();
  if (words.start != "now") {
    const auto at = parse_ahead(words.start, now);
    if (!at) return at.error().with_context("START");
    start = *at;
  }
  const auto length = parse_duration(words.duration, BareNumber::Minutes);
  if (!length) {
    return length.error().with_context("DURATION '{}'", escape_terminal(words.duration, 80));
  }
  if (*length < limits::kMinReservation || *length > limits::kMaxReservation) {
    return fail(Errc::TooLarge, "DURATION {}: use a time from {} to {}",
                escape_terminal(words.duration, 80), format_duration(limits::kMinReservation),
                format_duration(limits::kMaxReservation));
  }
  if (start > INT64_MAX - length->count()) {
    return fail(Errc::TooLarge, "START {}: too far ahead", escape_terminal(words.start, 80));
  }
  out.set_start_wall_ns(start);
  out.set_end_wall_ns(start + length->count());
  if (words.users != "-" && words.users != "maintenance")
    add_words(*out.mutable_users(), words.users);
  add_words(*out.mutable_accounts(), words.accounts);
  out.set_name(words.name);
  out.set_reason(words.reason);
  request.set_ends_jobs(words.ends_jobs);
  return request;
}

std::string reservations_page(const wire::ReservationList& list, const CommonOptions& options,
                              WallTime now) {
  const std::vector<TableColumn<ReservationRow>> all = {
      {"name", "NAME", Align::Left, [](const ReservationRow& r) { return r.name(); }},
      {"state", "STATE", Align::Left,
       [now](const ReservationRow& r) {
         return std::string(proto::is_active(r, now) ? "active" : "waiting");
       }},
      {"start", "START", Align::Left,
       [](const ReservationRow& r) { return local_time(r.start_wall_ns()); }},
      {"end", "END", Align::Left,
       [](const ReservationRow& r) { return local_time(r.end_wall_ns()); }},
      {"nodes", "NODES", Align::Left, nodes_of},
      {"for", "FOR", Align::Left, whom},
      {"reason", "REASON", Align::Left, [](const ReservationRow& r) { return r.reason(); }},
  };
  std::vector<const TableColumn<ReservationRow>*> columns;
  for (const auto& column : all) columns.push_back(&column);
  return make_table(columns, list.reservations()).to_text(table_style(options));
}

std::string reservations_json(const wire::ReservationList& list, WallTime now) {
  JsonWriter json;
  proto::write_reservations(json, list, now);
  return json.take() + "\n";
}

}  // namespace score::scout
