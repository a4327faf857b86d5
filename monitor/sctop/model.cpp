#include "monitor/sctop/model.hpp"

#include "base/errc.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace score::sctop {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLine = 64UL << 20U;

// A member that is missing or has a different type counts as absent.
const json::value* member(const json::object& object, std::string_view name) {
  const auto* found = object.if_contains(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

double number_of(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  return value.is_uint64() ? static_cast<double>(value.get_uint64()) : 0;
}

std::int64_t integer_of(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  return 0;
}

double number(const json::object& object, std::string_view name) {
  const auto* value = member(object, name);
  return value == nullptr ? 0 : number_of(*value);
}

std::int64_t integer(const json::object& object, std::string_view name) {
  const auto* value = member(object, name);
  return value == nullptr ? 0 : integer_of(*value);
}

std::string text(const json::object& object, std::string_view name) {
  const auto* value = member(object, name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

bool flag(const json::object& object, std::string_view name) {
  const auto* value = member(object, name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

const json::array& list(const json::object& object, std::string_view name) {
  static const json::array none;
  const auto* value = member(object, name);
  return value != nullptr && value->is_array() ? value->get_array() : none;
}

const json::object& part(const json::object& object, std::string_view name) {
  static const json::object none;
  const auto* value = member(object, name);
  return value != nullptr && value->is_object() ? value->get_object() : none;
}

// Calls take(object) for each object of the list.
template <class Take>
void each(const json::object& object, std::string_view name, Take take) {
  for (const auto& entry : list(object, name)) {
    if (entry.is_object()) take(entry.get_object());
  }
}

RowView row_of(const json::object& object) {
  RowView row{.slot = integer(object, "slot"), .active = flag(object, "active"), .cells = {}};
  for (const auto& cell : list(object, "cells")) {
    auto& jobs = row.cells.emplace_back();
    if (!cell.is_array()) continue;
    for (const auto& job : cell.get_array()) jobs.push_back(integer_of(job));
  }
  return row;
}

// Returns the state as scq shows it: the activity of a running job if it is idle or deadlocked,
// otherwise its state.
std::string shown_state(const json::object& job) {
  const auto activity = text(job, "activity");
  return activity == "idle" || activity == "deadlocked" ? activity : text(job, "state");
}

JobView job_of(const json::object& object) {
  JobView job;
  job.job = integer(object, "job");
  job.user = text(object, "user");
  job.name = text(object, "name");
  job.state = shown_state(object);
  job.nodes = integer(object, "nodes");
  job.tasks = integer(object, "tasks");
  if (const auto* slot = member(object, "slot")) job.slot = integer_of(*slot);
  job.share = number(object, "share");
  job.scheduled_s = number(object, "scheduled_s");
  job.elapsed_s = number(object, "elapsed_s");
  job.filled_s = number(object, "filled_s");
  job.is_final = flag(object, "final");
  const auto& reasons = list(object, "reasons");
  if (!reasons.empty() && reasons[0].is_string()) job.reason = reasons[0].get_string();
  for (const auto& wait : list(object, "waits")) {
    if (wait.is_string()) job.waits.emplace_back(wait.get_string());
  }
  return job;
}

// ProcessTable reads the rows of processes; their columns are named once.
class ProcessTable {
 public:
  explicit ProcessTable(const json::array& columns) : columns_(columns) {}

  ProcessView read(const json::array& row) const {
    ProcessView process;
    process.node = integer_of(at(row, "node"));
    process.job = integer_of(at(row, "job"));
    process.rank = integer_of(at(row, "rank"));
    const auto& state = at(row, "state");
    if (state.is_string()) process.state = state.get_string();
    process.user = number_of(at(row, "user"));
    process.system = number_of(at(row, "system"));
    process.pm = number_of(at(row, "pm"));
    process.waited = number_of(at(row, "waited"));
    process.filled = number_of(at(row, "filled"));
    return process;
  }

 private:
  const json::value& at(const json::array& row, std::string_view name) const {
    static const json::value none;
    for (std::size_t i = 0; i < columns_.size() && i < row.size(); ++i) {
      if (columns_[i].is_string() && columns_[i].get_string() == name) return row[i];
    }
    return none;
  }

  const json::array& columns_;
};

void read_processes(const json::object& object, Model& model) {
  const ProcessTable table(list(object, "columns"));
  for (const auto& row : list(object, "rows")) {
    if (row.is_array()) model.processes.push_back(table.read(row.get_array()));
  }
}

std::optional<Percentiles> percentiles(const json::object& object, std::string_view name) {
  const auto* value = member(object, name);
  if (value == nullptr || !value->is_object()) return std::nullopt;
  const auto& values = value->get_object();
  return Percentiles{number(values, "p50_s"), number(values, "p95_s"), number(values, "max_s")};
}

void read_cluster(const json::object& cluster, Model& model) {
  model.cluster = text(cluster, "name");
  model.is_virtual = flag(cluster, "virtual");
  model.quantum_s = number(cluster, "quantum_s");
  model.switches_per_s = number(cluster, "switches_per_s");
  if (member(cluster, "overhead") != nullptr) model.overhead = number(cluster, "overhead");
  for (const auto& [name, value] : part(cluster, "overhead_parts")) {
    model.overhead_parts.emplace_back(name, number_of(value));
  }
  model.nodes_up = integer(cluster, "nodes_up");
  model.nodes_known = integer(cluster, "nodes_known");
  model.slots = integer(cluster, "slots");
}

void read_scratch(const json::object& scratch, ScratchView& sum) {
  sum.reserved += number(scratch, "reserved_bytes");
  each(scratch, "volumes", [&](const json::object& volume) {
    ++sum.servers;
    sum.down += flag(volume, "down") ? 1 : 0;
    sum.used += number(volume, "used_bytes");
    sum.read += number(volume, "read_bytes_per_s");
    sum.written += number(volume, "written_bytes_per_s");
    sum.queue += integer(volume, "queue");
  });
}

}  // namespace

Result<Model> parse_document(std::string_view line) {
  if (line.size() > kMaxLine) return fail(Errc::TooLarge, "document of {} bytes", line.size());
  boost::system::error_code failed;
  const auto value = json::parse(line, failed);
  if (failed || !value.is_object()) {
    return fail(Errc::Malformed, "not a document of the stream: {}",
                failed ? failed.message() : "no object");
  }
  const auto& object = value.get_object();
  Model model;
  read_cluster(part(object, "cluster"), model);
  each(object, "nodes", [&](const json::object& node) {
    model.nodes.push_back({text(node, "name"), text(node, "state"), flag(node, "drained")});
    read_scratch(part(node, "scratch"), model.scratch);
  });
  each(part(object, "matrix"), "rows",
       [&](const json::object& row) { model.rows.push_back(row_of(row)); });
  each(object, "jobs", [&](const json::object& job) { model.jobs.push_back(job_of(job)); });
  read_processes(part(object, "processes"), model);
  const auto& switches = part(object, "switches");
  model.total = percentiles(part(switches, "phases"), "total");
  model.skew = percentiles(switches, "skew");
  model.late = integer(switches, "late_total");
  return model;
}

}  // namespace score::sctop
