// scacct: accounting of ended jobs. Prints page by page, so that a year of jobs takes no more
// memory than an hour.
#include "base/text/json_writer.hpp"
#include "base/time.hpp"
#include "scout/commands/account_sums.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/session.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

using Row = wire::AccountingRow;
using Columns = std::vector<Column<Row>>;
using SumColumns = std::vector<Column<AccountSum>>;

constexpr const char* kOwnFields = "job,name,state,exit,nodes,tasks,elapsed,scheduled,share,cpu";
constexpr const char* kAllFields =
    "job,user,account,name,state,exit,nodes,tasks,elapsed,scheduled,share,cpu";

struct AccountOptions {
  CommonOptions common;
  bool all_users = false;
  bool csv = false;
  std::string since = "1d";
  std::string until;
  std::string by;
};

struct Period {
  std::int64_t since_ns = 0, until_ns = 0;
};

std::int64_t elapsed_ns(const Row& row) {
  return row.started_wall_ns() > 0 ? row.ended_wall_ns() - row.started_wall_ns() : 0;
}

// Scheduled time as a part of the elapsed time, 0 to 1.
double share_of(const Row& row) {
  const auto elapsed = elapsed_ns(row);
  return elapsed > 0
             ? std::min(1.0, static_cast<double>(row.scheduled_ns()) / static_cast<double>(elapsed))
             : 0;
}

// Scheduled time of all tasks together.
std::int64_t cpu_ns(const Row& row) {
  return row.scheduled_ns() * row.tasks();
}

// Times as people read them, or as seconds for programs.
Columns columns_for(bool plain) {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  const auto span = [plain](std::int64_t ns) {
    return plain ? fmt::format("{:.3f}", to_seconds(ns)) : short_time(ns);
  };
  const auto moment = [plain](std::int64_t ns) {
    return plain ? fmt::format("{:.3f}", to_seconds(ns)) : local_time(ns);
  };
  const auto share = [plain](const Row& r) {
    return plain ? fmt::format("{:.4f}", share_of(r)) : fmt::format("{:.0f}%", share_of(r) * 100);
  };
  return {
      {"job", "JOB", kRight,
       [](const Row& r) {
         const bool is_task = r.array_job() != 0 && r.array_job() != r.job();
         return is_task ? fmt::format("{}_{}", r.array_job(), r.array_task())
                        : std::to_string(r.job());
       }},
      {"user", "USER", kLeft, [](const Row& r) { return r.user_name(); }},
      {"account", "ACCOUNT", kLeft, [](const Row& r) { return r.account(); }},
      {"name", "NAME", kLeft, [](const Row& r) { return r.name(); }},
      {"state", "STATE", kLeft, [](const Row& r) { return std::string(state_word(r.state())); }},
      {"exit", "EXIT", kRight, [](const Row& r) { return std::to_string(r.exit_code()); }},
      {"signal", "SIGNAL", kRight,
       [](const Row& r) { return r.signal() != 0 ? std::to_string(r.signal()) : std::string(); }},
      {"nodes", "NODES", kRight, [](const Row& r) { return std::to_string(r.node_count()); }},
      {"tasks", "TASKS", kRight, [](const Row& r) { return std::to_string(r.tasks()); }},
      {"elapsed", "ELAPSED", kRight, [span](const Row& r) { return span(elapsed_ns(r)); }},
      {"scheduled", "SCHED", kRight, [span](const Row& r) { return span(r.scheduled_ns()); }},
      {"filled", "FILLED", kRight, [span](const Row& r) { return span(r.filled_ns()); }},
      {"share", "SHARE", kRight, share},
      {"cpu", "CPU", kRight, [span](const Row& r) { return span(cpu_ns(r)); }},
      {"cores", "CORES", kRight, [](const Row& r) { return std::to_string(r.cores()); }},
      {"gres", "GRES", kLeft, [](const Row& r) { return r.generic(); }},
      {"corehours", "COREHOURS", kRight,
       [](const Row& r) { return fmt::format("{:.4f}", core_hours_of(r)); }},
      {"restarts", "RESTARTS", kRight, [](const Row& r) { return std::to_string(r.restarts()); }},
      {"submitted", "SUBMITTED", kLeft,
       [moment](const Row& r) { return moment(r.submitted_wall_ns()); }},
      {"started", "STARTED", kLeft, [moment](const Row& r) { return moment(r.started_wall_ns()); }},
      {"ended", "ENDED", kLeft, [moment](const Row& r) { return moment(r.ended_wall_ns()); }},
      {"nodelist", "NODELIST", kLeft, [](const Row& r) { return r.nodes(); }},
  };
}

void write_row(JsonWriter& json, const Row& row) {
  json.begin_object();
  json.field("job", row.job());
  if (row.array_job() != 0) json.field("array_job", row.array_job());
  if (row.array_job() != 0 && row.array_job() != row.job()) {
    json.field("array_task", row.array_task());
  }
  json.field("user", row.user_name()).field("uid", row.user());
  json.field("account", row.account());
  json.field("name", row.name()).field("state", state_word(row.state()));
  json.field("exit_code", row.exit_code()).field("signal", row.signal());
  json.field("nodes", row.node_count());
  json.field("nodelist", row.nodes()).field("tasks", row.tasks());
  json.field("elapsed_s", to_seconds(elapsed_ns(row)));
  json.field("scheduled_s", to_seconds(row.scheduled_ns()));
  json.field("filled_s", to_seconds(row.filled_ns()));
  json.field("share", share_of(row)).field("cpu_s", to_seconds(cpu_ns(row)));
  json.field("gres", row.generic());
  json.field("cores", row.cores()).field("core_hours", core_hours_of(row));
  json.field("restarts", row.restarts());
  write_moment(json, "submitted_unix_s", row.submitted_wall_ns());
  write_moment(json, "started_unix_s", row.started_wall_ns());
  write_moment(json, "ended_unix_s", row.ended_wall_ns());
  json.end_object();
}

// RFC 4180: quoted where it must be.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells) (line += line.empty() ? "" : ",") += csv_cell(cell);
  return line + "\n";
}

using Show = std::function<void(const std::vector<Row>&)>;

// Calls `show` for each page.
Result<int> each_page(HeadLink& head, const AccountOptions& options, const Period& period,
                      const Show& show) {
  wire::GetAccounting request;
  request.set_all_users(options.all_users);
  request.set_since_wall_ns(period.since_ns);
  for (;;) {
    const auto page = head.ask<wire::Accounting>(request);
    if (!page) return page.error();
    std::vector<Row> rows;
    for (const auto& row : page->rows()) {
      if (row.ended_wall_ns() < period.until_ns) rows.push_back(row);
    }
    const bool is_last = !page->more() || static_cast<int>(rows.size()) < page->rows_size();
    show(rows);
    if (is_last) return kExitOk;
    request.set_since_wall_ns(rows.back().ended_wall_ns());
    request.set_after_job(rows.back().job());
  }
}

Result<int> show_json(HeadLink& head, const AccountOptions& options, const Period& period) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.accounting/1").key("jobs").begin_array();
  const auto shown = each_page(head, options, period, [&](const std::vector<Row>& rows) {
    for (const auto& row : rows) write_row(json, row);
  });
  if (shown) print(json.end_array().end_object().text() + "\n");
  return shown;
}

template <class Item>
std::string text_of(const std::vector<const Column<Item>*>& columns, const std::vector<Item>& rows,
                    bool csv, bool with_header) {
  if (!csv) return make_table(columns, rows).to_text(with_header, output_width());
  std::vector<std::string> cells;
  for (const auto* column : columns) cells.emplace_back(column->key);
  std::string text = with_header ? csv_line(cells) : "";
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = columns[i]->cell(row);
    text += csv_line(cells);
  }
  return text;
}

Result<int> show_rows(HeadLink& head, const AccountOptions& options, const Period& period) {
  const auto all = columns_for(options.csv);
  const std::string fields = !options.common.fields.empty() ? options.common.fields
                             : options.all_users            ? kAllFields
                                                            : kOwnFields;
  const auto columns = choose_columns(all, fields);
  if (!columns) return columns.error();
  bool with_header = !options.common.no_header;
  return each_page(head, options, period, [&](const std::vector<Row>& rows) {
    print(text_of(*columns, rows, options.csv, std::exchange(with_header, false)));
  });
}

// ---- sums ---------------------------------------------------------------------------------------

SumColumns sum_columns(bool plain) {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  const auto span = [plain](double seconds) {
    return plain ? fmt::format("{:.3f}", seconds)
                 : short_time(static_cast<std::int64_t>(seconds * 1e9));
  };
  return {
      {"user", "USER", kLeft, [](const AccountSum& s) { return s.user; }},
      {"account", "ACCOUNT", kLeft, [](const AccountSum& s) { return s.account; }},
      {"day", "DAY", kLeft, [](const AccountSum& s) { return s.day; }},
      {"jobs", "JOBS", kRight, [](const AccountSum& s) { return std::to_string(s.jobs); }},
      {"elapsed", "ELAPSED", kRight, [span](const AccountSum& s) { return span(s.elapsed_s); }},
      {"scheduled", "SCHED", kRight, [span](const AccountSum& s) { return span(s.scheduled_s); }},
      {"filled", "FILLED", kRight, [span](const AccountSum& s) { return span(s.filled_s); }},
      {"corehours", "COREHOURS", kRight,
       [](const AccountSum& s) { return fmt::format("{:.4f}", s.core_hours); }},
  };
}

void write_sums(const AccountSums& sums) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.accounting-sums/1").key("sums").begin_array();
  for (const AccountSum& sum : sums.rows()) {
    json.begin_object();
    for (const std::string& key : sums.keys()) {
      json.field(key, key == "user" ? sum.user : key == "account" ? sum.account : sum.day);
    }
    json.field("jobs", sum.jobs).field("elapsed_s", sum.elapsed_s);
    json.field("scheduled_s", sum.scheduled_s).field("filled_s", sum.filled_s);
    json.field("core_hours", sum.core_hours).end_object();
  }
  print(json.end_array().end_object().text() + "\n");
}

Result<int> show_sums(HeadLink& head, const AccountOptions& options, const Period& period) {
  auto sums = AccountSums::by(options.by);
  if (!sums) return sums.error();
  std::string fields = options.common.fields;
  if (fields.empty()) {
    for (const std::string& key : sums->keys()) fields += key + ",";
    fields += "jobs,elapsed,scheduled,filled,corehours";
  }
  const auto all = sum_columns(options.csv);
  const auto columns = choose_columns(all, fields);
  if (!columns) return columns.error();
  const auto asked = each_page(head, options, period, [&](const std::vector<Row>& rows) {
    for (const Row& row : rows) sums->add(row);
  });
  if (!asked) return asked;
  if (options.common.json) {
    write_sums(*sums);
  } else {
    print(text_of(*columns, sums->rows(), options.csv, !options.common.no_header));
  }
  return kExitOk;
}

// --format csv, json and table say how to print, other words are columns.
void take_format(AccountOptions& options) {
  std::string& fields = options.common.fields;
  options.csv = options.csv || fields == "csv";
  options.common.json = options.common.json || fields == "json";
  if (fields == "csv" || fields == "json" || fields == "table") fields.clear();
}

Result<Period> period_of(const AccountOptions& options) {
  const std::int64_t now = wall_now().time_since_epoch().count();
  const auto since = parse_past(options.since, now);
  if (!since) return since.error();
  const auto until =
      options.until.empty() ? Result<std::int64_t>(INT64_MAX) : parse_past(options.until, now);
  if (!until) return until.error();
  return Period{*since, *until};
}

}  // namespace

int scacct_main(const Invocation& invocation) {
  AccountOptions options;
  CLI::App app;
  describe(app, invocation, "Shows the accounting of ended jobs: elapsed and scheduled time");
  add_server_option(app, options.common);
  add_table_options(app, options.common);
  app.add_flag("-a,--all", options.all_users, "Show jobs of all users");
  app.add_flag("--csv", options.csv, "Print comma-separated values, times in seconds");
  app.add_option("-S,--since", options.since,
                 "Only jobs that ended after TIME: 2h, 7d, 2026-11-21T08:30")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("-E,--until", options.until, "Only jobs that ended before TIME")
      ->type_name("TIME");
  app.add_option("--by", options.by, "Show sums by user, account or day, or several of them")
      ->type_name("KEYS");
  if (const auto code = parse(app, invocation)) return *code;
  take_format(options);
  return with_head(invocation, options.common, [&](HeadLink& head) -> Result<int> {
    const auto period = period_of(options);
    if (!period) return period.error();
    if (!options.by.empty()) return show_sums(head, options, *period);
    return options.common.json ? show_json(head, options, *period)
                               : show_rows(head, options, *period);
  });
}

}  // namespace score::scout
