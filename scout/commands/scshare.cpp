// scshare prints accounts and their users: shares, recent and current use, and limits.
#include "base/text/json_writer.hpp"
#include "base/units.hpp"
#include "proto/documents/pool_documents.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/job_filter.hpp"
#include "scout/session/session.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <set>
#include <utility>

namespace score::scout {

namespace {

using wire::ShareRow;

constexpr const char* kShareFields =
    "account,user,share,used,corehours,factor,jobs,running,nodes,memory,limits";

std::string percent(double part) {
  return fmt::format("{:.1f}%", part * 100);
}

std::string limits_of(const ShareRow& row) {
  std::string text;
  for (const std::string& limit : row.limits()) text += (text.empty() ? "" : ", ") + limit;
  return text;
}

// Jobs may have no account: all jobs, or those of operators.
std::string account_of(const ShareRow& row) {
  return row.account().empty() ? "(none)" : row.account();
}

std::vector<TableColumn<ShareRow>> share_columns_for(bool shares_are_on) {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  return {
      {"account", "ACCOUNT", kLeft, account_of},
      {"user", "USER", kLeft, [](const ShareRow& r) { return r.user_name(); }},
      {"share", "SHARE", kRight, [](const ShareRow& r) { return percent(r.share()); }},
      {"used", "USED", kRight, [](const ShareRow& r) { return percent(r.used()); }},
      {"corehours", "COREHOURS", kRight,
       [](const ShareRow& r) { return fmt::format("{:.2f}", proto::core_hours_of(r)); }},
      {"factor", "FACTOR", kRight,
       [shares_are_on](const ShareRow& r) {
         return shares_are_on ? fmt::format("{:.3f}", r.factor()) : std::string("off");
       }},
      {"jobs", "JOBS", kRight, [](const ShareRow& r) { return std::to_string(r.jobs()); }},
      {"running", "RUNNING", kRight,
       [](const ShareRow& r) { return std::to_string(r.running_jobs()); }},
      {"nodes", "NODES", kRight, [](const ShareRow& r) { return std::to_string(r.nodes()); }},
      {"memory", "MEMORY", kRight,
       [](const ShareRow& r) { return human_bytes(Bytes(r.memory_bytes())); }},
      {"limits", "LIMITS", kLeft, limits_of},
  };
}

using WordSet = std::set<std::string, std::less<>>;

// Removes the rows of other users and accounts; an empty set selects all.
void keep(wire::ShareList& list, const WordSet& users, const WordSet& accounts) {
  wire::ShareList kept;
  for (auto& row : *list.mutable_rows()) {
    const bool is_kept = (users.empty() || users.contains(row.user_name())) &&
                         (accounts.empty() || accounts.contains(row.account()));
    if (is_kept) *kept.add_rows() = std::move(row);
  }
  list.mutable_rows()->Swap(kept.mutable_rows());
}

}  // namespace

int scshare_main(const Invocation& invocation) {
  CommonOptions options;
  std::vector<std::string> users, accounts;
  CLI::App app;
  describe(app, invocation, "Shows accounts and users: shares, recent use, jobs and limits");
  add_server_option(app, options);
  add_table_options(app, options);
  app.add_option("-u,--user", users, "Only these users")
      ->type_name("USER,...")
      ->allow_extra_args(false);
  app.add_option("-A,--account", accounts, "Only these accounts and their users")
      ->type_name("NAME,...")
      ->allow_extra_args(false);
  if (const auto code = parse(app, invocation)) return *code;
  if (options.fields.empty()) options.fields = kShareFields;
  if (const auto columns = choose_columns(share_columns_for(true), options.fields); !columns) {
    return print_error(invocation, columns.error());
  }
  const auto show = [&](HeadLink& head) -> Result<int> {
    auto list = head.ask<wire::ShareList>(wire::ListShares());
    if (!list) return list.error();
    keep(*list, words_of_lists(users), words_of_lists(accounts));
    if (options.json) {
      JsonWriter json;
      proto::write_shares(json, *list);
      print(json.take() + "\n");
      return kExitOk;
    }
    const auto all = share_columns_for(list->half_life_ns() > 0);
    const auto columns = choose_columns(all, options.fields);
    if (!columns) return columns.error();
    print(make_table(*columns, list->rows()).to_text(table_style(options)));
    return kExitOk;
  };
  return with_head(invocation, options, show, kReadsOnly);
}

}  // namespace score::scout
