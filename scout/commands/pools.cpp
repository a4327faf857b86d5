// score partitions and score licenses print what Info says about them.
#include "scout/commands/pools.hpp"

#include "base/text/plain.hpp"
#include "base/time.hpp"
#include "proto/documents/cluster_documents.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/session.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

namespace score::scout {

namespace {

using wire::LicenseState;
using wire::PartitionState;

std::string comma_list(const auto& texts) {
  return fmt::format("{}", fmt::join(texts, ","));
}

std::string up_of(const PartitionState& p) {
  return fmt::format("{}/{}", p.nodes_up(), p.nodes_known());
}

std::string time_of(const PartitionState& p) {
  return p.max_time_ns() > 0 ? format_duration(Duration(p.max_time_ns())) : "";
}

// Returns who may use the partition: "alice,@chem,account physics"; empty: everyone.
std::string access_of(const PartitionState& p) {
  std::string text = comma_list(p.users());
  for (const auto& account : p.accounts()) {
    text += fmt::format("{}account {}", text.empty() ? "" : ",", account);
  }
  return text;
}

std::string partition_limits(const PartitionState& p) {
  std::string text = fmt::format("{}", fmt::join(p.limits(), ", "));
  if (p.no_fill()) text += text.empty() ? "no fill" : ", no fill";
  return text;
}

std::uint32_t free_of(const LicenseState& l) {
  return l.total() > l.used() ? l.total() - l.used() : 0;
}

const std::vector<TableColumn<PartitionState>>& partition_columns() {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  static const std::vector<TableColumn<PartitionState>> columns = {
      {"partition", "PARTITION", kLeft,
       [](const PartitionState& p) { return p.name() + (p.is_default() ? "*" : ""); }},
      {"up", "UP", kRight, up_of},
      {"placed", "PLACED", kRight,
       [](const PartitionState& p) { return std::to_string(p.jobs_running()); }},
      {"pending", "PENDING", kRight,
       [](const PartitionState& p) { return std::to_string(p.jobs_waiting()); }},
      {"order", "ORDER", kRight, [](const PartitionState& p) { return std::to_string(p.order()); }},
      {"maxtime", "MAXTIME", kRight, time_of},
      {"limits", "LIMITS", kLeft, partition_limits},
      {"users", "USERS", kLeft, access_of},
      {"nodelist", "NODELIST", kLeft, [](const PartitionState& p) { return p.nodes(); }},
  };
  return columns;
}

const std::vector<TableColumn<LicenseState>>& license_columns() {
  constexpr auto kRight = Align::Right;
  static const std::vector<TableColumn<LicenseState>> columns = {
      {"license", "LICENSE", Align::Left, [](const LicenseState& l) { return l.name(); }},
      {"total", "TOTAL", kRight, [](const LicenseState& l) { return std::to_string(l.total()); }},
      {"used", "USED", kRight, [](const LicenseState& l) { return std::to_string(l.used()); }},
      {"free", "FREE", kRight, [](const LicenseState& l) { return std::to_string(free_of(l)); }},
      {"waiting", "WAITING", kRight,
       [](const LicenseState& l) { return std::to_string(l.jobs_waiting()); }},
  };
  return columns;
}

template <class Item>
struct Columns {
  const char* about;  // of the command
  const char* shown;  // keys that are shown by default
  const std::vector<TableColumn<Item>>& all;
};

// Prints one of the lists. `items` returns it, and `write` adds it to a JSON object.
template <class Item, class Items, class Write>
int list_main(const Invocation& invocation, const Columns<Item>& columns, Items items,
              Write write) {
  CommonOptions options;
  CLI::App app;
  describe(app, invocation, columns.about);
  add_server_option(app, options);
  add_table_options(app, options);
  if (const auto code = parse(app, invocation)) return *code;
  if (options.fields.empty()) options.fields = columns.shown;
  const auto chosen = choose_columns(columns.all, options.fields);
  if (!chosen) return print_error(invocation, chosen.error());
  const auto show = [&](HeadLink& head) -> Result<int> {
    const auto info = head.ask<wire::Info>(wire::GetInfo());
    if (!info) return info.error();
    if (options.json) {
      JsonWriter json;
      write(json.begin_object(), *info);
      return print(json.end_object().text() + "\n"), kExitOk;
    }
    print(make_table(*chosen, items(*info)).to_text(table_style(options)));
    return kExitOk;
  };
  return with_head(invocation, options, show, kReadsOnly);
}

}  // namespace

std::string pools_lines(const wire::Info& info) {
  std::string lines;
  for (const PartitionState& p : info.partitions()) {
    const std::string limit = time_of(p);
    lines += fmt::format("partition {}{}: {}, {} up, {} placed, {} pending{}\n",
                         escape_terminal(p.name(), 80), p.is_default() ? " (default)" : "",
                         counted(p.nodes_known(), "node"), p.nodes_up(),
                         counted(p.jobs_running(), "job"), p.jobs_waiting(),
                         limit.empty() ? "" : ", max time " + limit);
  }
  for (const LicenseState& l : info.licenses()) {
    lines += fmt::format("license {}: {} of {} used\n", escape_terminal(l.name(), 80), l.used(),
                         l.total());
  }
  return lines;
}

int partitions_main(const Invocation& invocation) {
  const Columns<PartitionState> columns{"Shows the partitions of the cluster; * marks the default",
                                        "partition,up,placed,pending,maxtime,nodelist,limits",
                                        partition_columns()};
  return list_main(
      invocation, columns, [](const wire::Info& info) { return info.partitions(); },
      [](JsonWriter& json, const wire::Info& info) {
        proto::write_partitions(json.field("schema", "scored.partitions/1"), info);
      });
}

int licenses_main(const Invocation& invocation) {
  const Columns<LicenseState> columns{"Shows the licenses of the cluster and how many are used",
                                      "license,total,used,free,waiting", license_columns()};
  return list_main(
      invocation, columns, [](const wire::Info& info) { return info.licenses(); },
      [](JsonWriter& json, const wire::Info& info) {
        proto::write_licenses(json.field("schema", "scored.licenses/1"), info);
      });
}

}  // namespace score::scout
