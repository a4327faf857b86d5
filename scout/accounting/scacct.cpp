// scacct prints the accounting of ended jobs. It prints page by page, so that a year of jobs takes
// no more memory than an hour.
#include "base/text/index_set.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/plain.hpp"
#include "base/time.hpp"
#include "proto/documents/accounting_document.hpp"
#include "scout/accounting/account_sums.hpp"
#include "scout/accounting/accounting.hpp"
#include "scout/session/job_filter.hpp"
#include "scout/session/session.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/usage_words.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

namespace score::scout {

namespace {

using wire::AccountingRow;
using AccountingColumns = std::vector<TableColumn<AccountingRow>>;
using SumColumns = std::vector<TableColumn<AccountSum>>;

constexpr const char* kOwnFields = "job,name,state,exit,nodes,tasks,elapsed,scheduled,share,cpu";
constexpr const char* kAllFields =
    "job,user,account,name,state,exit,nodes,tasks,elapsed,scheduled,share,cpu";

constexpr const char* kLongFields =
    "job,user,account,name,state,exit,signal,nodes,tasks,elapsed,scheduled,cpu,"
    "memory_peak_bytes,memory_peak_sum_bytes,read_bytes,write_bytes,pm_bytes";

constexpr const char* kDefaultSince = "1d";
constexpr std::uint32_t kMostTasks = 1'000'000;  // tasks per array, as in parse_job_word()

struct AccountOptions {
  CommonOptions common;
  bool all_users = false;
  bool csv = false;
  bool is_long = false;
  std::string since;  // empty: kDefaultSince; no limit for named jobs
  std::string until;
  std::string by;
  JobFilter filter;
};

struct Period {
  std::int64_t since_ns = 0, until_ns = 0;
};

// Returns a column of what the jobs used; "-" for a job of which it was not recorded.
template <class Cell>
TableColumn<AccountingRow> usage_column(const char* key, const char* heading, Cell cell) {
  return {key, heading, Align::Right, [cell](const AccountingRow& row) {
            const auto usage = usage_in(row);
            return usage ? std::string(cell(*usage)) : std::string("-");
          }};
}

AccountingColumns usage_columns(bool plain) {
  using base::Usage;
  const auto span = [plain](Duration time) {
    return plain ? fmt::format("{:.3f}", to_seconds(time.count())) : short_time(time.count());
  };
  const auto size = [plain](Bytes bytes) {
    return plain ? std::to_string(bytes.value()) : short_bytes(bytes);
  };
  const auto number = [](std::uint64_t count) { return std::to_string(count); };
  return {
      usage_column("cpu", "CPU",
                   [span](const Usage& u) { return span(u.cpu_user + u.cpu_system); }),
      usage_column("cpu_user_s", "USERCPU", [span](const Usage& u) { return span(u.cpu_user); }),
      usage_column("cpu_system_s", "SYSCPU", [span](const Usage& u) { return span(u.cpu_system); }),
      usage_column("memory_peak_bytes", "MEMORY",
                   [size](const Usage& u) { return size(u.memory_peak); }),
      usage_column("memory_peak_sum_bytes", "MEMSUM",
                   [size](const Usage& u) { return size(u.memory_peak_sum); }),
      usage_column("page_faults", "FAULTS",
                   [number](const Usage& u) { return number(u.page_faults); }),
      usage_column("read_bytes", "READ", [size](const Usage& u) { return size(u.read); }),
      usage_column("write_bytes", "WRITTEN", [size](const Usage& u) { return size(u.write); }),
      usage_column("pm_messages", "MESSAGES",
                   [number](const Usage& u) { return number(u.pm_messages); }),
      usage_column("pm_bytes", "SENT", [size](const Usage& u) { return size(u.pm_sent); }),
      usage_column("switches_voluntary", "VOLUNTARY",
                   [number](const Usage& u) { return number(u.switches_voluntary); }),
      usage_column("switches_involuntary", "INVOLUNTARY",
                   [number](const Usage& u) { return number(u.switches_involuntary); }),
      usage_column("nodes_unknown", "UNKNOWN",
                   [number](const Usage& u) { return number(u.nodes_unknown); }),
      usage_column("paged_out_bytes", "PAGEDOUT",
                   [size](const Usage& u) { return size(u.paged_out); }),
      usage_column("paged_in_bytes", "PAGEDIN",
                   [size](const Usage& u) { return size(u.paged_in); }),
      usage_column("parked_s", "PARKED", [span](const Usage& u) { return span(u.parked); }),
  };
}

AccountingColumns record_columns(bool plain) {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  const auto span = [plain](std::int64_t ns) {
    return plain ? fmt::format("{:.3f}", to_seconds(ns)) : short_time(ns);
  };
  const auto moment = [plain](std::int64_t ns) {
    return plain ? fmt::format("{:.3f}", to_seconds(ns)) : local_time(ns);
  };
  const auto share = [plain](const AccountingRow& r) {
    return plain ? fmt::format("{:.4f}", proto::share_of(r))
                 : fmt::format("{:.0f}%", proto::share_of(r) * 100);
  };
  return {
      {"job", "JOB", kRight,
       [](const AccountingRow& r) {
         const bool is_task = r.array_job() != 0 && r.array_job() != r.job();
         return is_task ? fmt::format("{}_{}", r.array_job(), r.array_task())
                        : std::to_string(r.job());
       }},
      {"user", "USER", kLeft, [](const AccountingRow& r) { return r.user_name(); }, true},
      {"account", "ACCOUNT", kLeft, [](const AccountingRow& r) { return r.account(); }, true},
      {"partition", "PARTITION", kLeft, [](const AccountingRow& r) { return r.partition(); }},
      {"name", "NAME", kLeft, [](const AccountingRow& r) { return r.name(); }, true},
      {"state", "STATE", kLeft,
       [](const AccountingRow& r) { return std::string(state_word(r.state())); }, false,
       [](const AccountingRow& r) { return state_tint(r.state()); }},
      {"exit", "EXIT", kRight,
       [](const AccountingRow& r) { return std::to_string(r.exit_code()); }},
      {"signal", "SIGNAL", kRight,
       [](const AccountingRow& r) {
         return r.signal() != 0 ? std::to_string(r.signal()) : std::string();
       }},
      {"nodes", "NODES", kRight,
       [](const AccountingRow& r) { return std::to_string(r.node_count()); }},
      {"tasks", "TASKS", kRight, [](const AccountingRow& r) { return std::to_string(r.tasks()); }},
      {"elapsed", "ELAPSED", kRight,
       [span](const AccountingRow& r) { return span(proto::elapsed_ns(r)); }},
      {"scheduled", "SCHED", kRight,
       [span](const AccountingRow& r) { return span(r.scheduled_ns()); }},
      {"filled", "FILLED", kRight, [span](const AccountingRow& r) { return span(r.filled_ns()); }},
      {"share", "SHARE", kRight, share},
      {"cores", "CORES", kRight, [](const AccountingRow& r) { return std::to_string(r.cores()); }},
      {"gres", "GRES", kLeft, [](const AccountingRow& r) { return r.generic(); }},
      {"licenses", "LICENSES", kLeft, [](const AccountingRow& r) { return r.licenses(); }},
      {"corehours", "COREHOURS", kRight,
       [](const AccountingRow& r) { return fmt::format("{:.4f}", proto::core_hours_of(r)); }},
      {"restarts", "RESTARTS", kRight,
       [](const AccountingRow& r) { return std::to_string(r.restarts()); }},
      {"submitted", "SUBMITTED", kLeft,
       [moment](const AccountingRow& r) { return moment(r.submitted_wall_ns()); }},
      {"started", "STARTED", kLeft,
       [moment](const AccountingRow& r) { return moment(r.started_wall_ns()); }},
      {"ended", "ENDED", kLeft,
       [moment](const AccountingRow& r) { return moment(r.ended_wall_ns()); }},
      {"out_of_memory", "OOM", kLeft,
       [](const AccountingRow& r) {
         return std::string(proto::is_out_of_memory(r) ? "yes" : "no");
       }},
      {"nodelist", "NODELIST", kLeft, [](const AccountingRow& r) { return r.nodes(); }},
  };
}

// Returns columns with times for people, or in seconds for programs.
AccountingColumns columns_for(bool plain) {
  AccountingColumns columns = record_columns(plain);
  std::ranges::move(usage_columns(plain), std::back_inserter(columns));
  return columns;
}

using Show = std::function<void(const std::vector<AccountingRow>&)>;

// Returns the rows of a page that the options select.
std::vector<AccountingRow> chosen_rows(const wire::Accounting& page, const AccountOptions& options,
                                       const Period& period) {
  std::vector<AccountingRow> rows;
  for (const auto& row : page.rows()) {
    const bool is_chosen = row.ended_wall_ns() >= period.since_ns &&
                           row.ended_wall_ns() < period.until_ns && options.filter.matches(row);
    if (is_chosen) rows.push_back(row);
  }
  return rows;
}

// Calls `show` for each page. Returns true if any page had rows before the selection.
Result<bool> each_page(HeadLink& head, wire::GetAccounting request, const AccountOptions& options,
                       const Period& period, const Show& show) {
  for (bool has_rows = false;;) {
    const auto page = head.ask<wire::Accounting>(request);
    if (!page) return page.error();
    show(chosen_rows(*page, options, period));
    if (page->rows().empty()) return has_rows;
    has_rows = true;
    const AccountingRow& last = page->rows(page->rows_size() - 1);
    if (!page->more() || last.ended_wall_ns() >= period.until_ns) return has_rows;
    request.set_since_wall_ns(last.ended_wall_ns());
    request.set_after_job(last.job());
  }
}

// Handles the job "7", and "12" for an array; tasks of an array are selected among its rows.
Result<bool> each_page_of(HeadLink& head, const JobWord& named, const AccountOptions& options,
                          const Period& period, const Show& show) {
  const auto tasks =
      named.tasks.empty() ? Result<IndexSet>(IndexSet()) : IndexSet::parse(named.tasks, kMostTasks);
  if (!tasks) return tasks.error();
  wire::GetAccounting request;
  request.set_all_users(true);
  request.set_job(named.job);
  bool found = false;
  const auto pages =
      each_page(head, request, options, period, [&](std::vector<AccountingRow> rows) {
        std::erase_if(rows, [&](const AccountingRow& row) {
          const bool is_task = row.array_job() == named.job && row.job() != named.job;
          if (row.job() != named.job && !is_task)
            return true;  // some heads return the rows of all jobs
          return !named.tasks.empty() && !(is_task && tasks->contains(row.array_task()));
        });
        found = found || !rows.empty();
        show(rows);
      });
  if (!pages) return pages.error();
  return named.tasks.empty() ? *pages : found;
}

Error no_record(const std::string& word) {
  return fail(Errc::NotFound, "no record of job {}: it has not ended, or was never submitted",
              escape_terminal(word, 80));
}

// Calls `show` for each page of selected rows, then reports the jobs without a record.
Result<int> each_row(HeadLink& head, const AccountOptions& options, const Period& period,
                     const Show& show, std::vector<Error>& missing) {
  for (const auto& word : options.filter.jobs()) {
    const auto named = parse_job_word(word);
    if (!named) return named.error();
    if (named->step) {
      return fail(Errc::Malformed, "{} is a step: its time is in the record of its job", word);
    }
    const auto found = each_page_of(head, *named, options, period, show);
    if (!found) return found.error();
    if (!*found) missing.push_back(no_record(word));
  }
  if (!options.filter.jobs().empty()) return kExitOk;
  wire::GetAccounting request;
  request.set_all_users(options.all_users || options.filter.names_users());
  request.set_since_wall_ns(period.since_ns);
  bool is_empty = true;
  const auto pages =
      each_page(head, request, options, period, [&](const std::vector<AccountingRow>& rows) {
        is_empty = is_empty && rows.empty();
        show(rows);
      });
  if (!pages) return pages.error();
  const std::string unknown = options.filter.unknown_users();
  if (is_empty && !unknown.empty()) missing.push_back(fail(Errc::NotFound, "{}", unknown));
  return kExitOk;
}

using Missing = std::vector<Error>;

Result<int> show_json(HeadLink& head, const AccountOptions& options, const Period& period,
                      Missing& missing) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.accounting/1").key("jobs").begin_array();
  const auto write = [&](const std::vector<AccountingRow>& rows) {
    for (const auto& row : rows) proto::write_record(json, row);
  };
  const auto shown = each_row(head, options, period, write, missing);
  if (shown) print(json.end_array().end_object().text() + "\n");
  return shown;
}

template <class Item>
std::string text_of(const std::vector<const TableColumn<Item>*>& columns,
                    const std::vector<Item>& rows, const AccountOptions& options,
                    bool with_header) {
  auto style = table_style(options.common);
  style.with_header = with_header;
  if (!options.csv) return make_table(columns, rows).to_text(style);
  std::vector<std::string> cells;
  for (const auto* column : columns) cells.emplace_back(column->key);
  std::string text = with_header ? proto::csv_line(cells) : "";
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = columns[i]->cell(row);
    text += proto::csv_line(cells);
  }
  return text;
}

std::string fields_of(const AccountOptions& options) {
  if (!options.common.fields.empty()) return options.common.fields;
  if (options.is_long) return kLongFields;
  return options.all_users || options.filter.names_users() ? kAllFields : kOwnFields;
}

Result<int> show_rows(HeadLink& head, const AccountOptions& options, const Period& period,
                      Missing& missing) {
  const auto all = columns_for(options.csv);
  const auto columns = choose_columns(all, fields_of(options));
  if (!columns) return columns.error();
  bool with_header = !options.common.no_header;
  // The rows of several jobs are printed as one table; otherwise one page is printed at a time.
  std::vector<AccountingRow> kept;
  const bool is_by_job = !options.filter.jobs().empty();
  const auto show = [&](const std::vector<AccountingRow>& rows) {
    if (is_by_job) {
      kept.insert(kept.end(), rows.begin(), rows.end());
    } else {
      print(text_of(*columns, rows, options, std::exchange(with_header, false)));
    }
  };
  const auto shown = each_row(head, options, period, show, missing);
  if (shown && is_by_job) print(text_of(*columns, kept, options, with_header));
  return shown;
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
      {"cpu", "CPU", kRight,
       [span](const AccountSum& s) {
         return span(to_seconds((s.usage.cpu_user + s.usage.cpu_system).count()));
       }},
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
    json.field("core_hours", sum.core_hours);
    base::write_usage(json, sum.usage);
    json.end_object();
  }
  print(json.end_array().end_object().text() + "\n");
}

std::string sum_fields(const AccountOptions& options, const AccountSums& sums) {
  if (!options.common.fields.empty()) return options.common.fields;
  std::string fields;
  for (const std::string& key : sums.keys()) fields += key + ",";
  return fields + "jobs,elapsed,scheduled,filled,corehours,cpu";
}

Result<int> show_sums(HeadLink& head, const AccountOptions& options, const Period& period,
                      Missing& missing) {
  auto sums = AccountSums::by(options.by);
  if (!sums) return sums.error();
  const auto all = sum_columns(options.csv);
  const auto columns = choose_columns(all, sum_fields(options, *sums));
  if (!columns) return columns.error();
  const auto add = [&](const std::vector<AccountingRow>& rows) {
    for (const AccountingRow& row : rows) sums->add(row);
  };
  const auto asked = each_row(head, options, period, add, missing);
  if (!asked) return asked;
  if (options.common.json) {
    write_sums(*sums);
  } else {
    print(text_of(*columns, sums->rows(), options, !options.common.no_header));
  }
  return kExitOk;
}

// Checks the options that can be checked without the head.
Status check(const AccountOptions& options) {
  if (options.by.empty()) {
    const auto columns = choose_columns(columns_for(false), fields_of(options));
    return columns ? Status() : columns.error();
  }
  const auto sums = AccountSums::by(options.by);
  if (!sums) return sums.error();
  const auto columns = choose_columns(sum_columns(false), sum_fields(options, *sums));
  return columns ? Status() : columns.error();
}

// Reads --format: csv, json and table select the output format, and other words are columns.
void take_format(AccountOptions& options) {
  std::string& fields = options.common.fields;
  options.csv = options.csv || fields == "csv";
  options.common.json = options.common.json || fields == "json";
  if (fields == "csv" || fields == "json" || fields == "table") fields.clear();
}

Result<Period> period_of(const AccountOptions& options) {
  const std::int64_t now = wall_now().time_since_epoch().count();
  const bool names_jobs = !options.filter.jobs().empty();
  const std::string from = options.since.empty() && !names_jobs ? kDefaultSince : options.since;
  const auto since = from.empty() ? Result<std::int64_t>(0) : parse_past(from, now);
  if (!since) return since.error().with_context("--since");
  const auto until =
      options.until.empty() ? Result<std::int64_t>(INT64_MAX) : parse_past(options.until, now);
  if (!until) return until.error().with_context("--until");
  return Period{*since, *until};
}

}  // namespace

int scacct_main(const Invocation& invocation) {
  AccountOptions options;
  CLI::App app;
  describe(app, invocation, "Shows the accounting of ended jobs: their times and what they used");
  add_server_option(app, options.common);
  add_table_options(app, options.common);
  app.add_flag("-a,--all", options.all_users, "Show jobs of all users");
  app.add_flag("-l,--long", options.is_long, "Show what the jobs used too");
  app.add_flag("--csv", options.csv, "Print comma-separated values, times in seconds");
  app.add_option(
         "-S,--since", options.since,
         "Only jobs that ended after TIME: 2h, 7d, 2026-11-21T08:30 (1d; with JOB: no limit)")
      ->type_name("TIME");
  app.add_option("-E,--until", options.until, "Only jobs that ended before TIME")
      ->type_name("TIME");
  app.add_option("--by", options.by, "Print sums by user, account or day, or by several of them")
      ->type_name("KEYS");
  options.filter.add_options(app, "Only these jobs; 12: all tasks of array 12; 12_7: one task");
  if (const auto code = parse(app, invocation)) return *code;
  if (const auto read = options.filter.read(); !read) return print_error(invocation, read.error());
  take_format(options);
  if (const auto good = check(options); !good) return print_error(invocation, good.error());
  const auto period = period_of(options);
  if (!period) return print_error(invocation, period.error());
  return with_head(invocation, options.common, [&](HeadLink& head) -> Result<int> {
    Missing missing;
    const auto shown = !options.by.empty()   ? show_sums(head, options, *period, missing)
                       : options.common.json ? show_json(head, options, *period, missing)
                                             : show_rows(head, options, *period, missing);
    return shown ? report_errors(invocation, missing) : shown;
  });
}

}  // namespace score::scout
