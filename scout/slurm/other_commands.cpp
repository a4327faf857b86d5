// sacctmgr and sstat as far as clients need them, and the command that makes the links.
#include "base/text.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/job_list.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/account_fields.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace score::scout {

namespace slurm {
namespace {

constexpr std::array kManagerForms = {
    OptionForm{"associations", 's'}, OptionForm{"immediate", 'i'}, OptionForm{"noheader", 'n'},
    OptionForm{"oneliner", 'o'},     OptionForm{"parsable", 'p'},  OptionForm{"parsable2", 'P'},
    OptionForm{"quiet", 'Q'},        OptionForm{"readonly", 'r'},  OptionForm{"verbose", 'v'},
};

constexpr std::array kStatForms = {
    OptionForm{"allsteps", 'a'},
    OptionForm{"format", 'o', Takes::Value},
    OptionForm{"fields", 0, Takes::Value},
    OptionForm{"helpformat", 'e'},
    OptionForm{"jobs", 'j', Takes::Value},
    OptionForm{"noconvert"},
    OptionForm{"noheader", 'n'},
    OptionForm{"parsable", 'p'},
    OptionForm{"parsable2", 'P'},
    OptionForm{"pidformat", 'i'},
    OptionForm{"verbose", 'v'},
};

using Words = std::vector<std::string>;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Association {
  std::string cluster, account, user;
};

// Returns the account in which users may submit; a cluster without accounts has none.
Result<std::vector<Association>> associations(HeadLink& head) {
  const auto info = head.ask<wire::Info>(wire::GetInfo());
  if (!info) return info.error();
  const auto shares = head.ask<wire::ShareList>(wire::ListShares());
  if (!shares) return shares.error();
  std::vector<Association> rows;
  for (const auto& row : shares->rows()) {
    if (!row.account().empty()) rows.push_back({info->cluster(), row.account(), row.user_name()});
  }
  return rows;
}

struct ManagerColumn {
  std::string key;
  std::size_t width = 10;
  bool is_left = false;
};

Result<std::vector<ManagerColumn>> manager_columns(const std::string& list) {
  constexpr std::array<std::string_view, 7> kKnown = {
      "account", "cluster", "user", "qos", "defaultaccount", "defaultqos", "partition"};
  std::vector<ManagerColumn> columns;
  for (const auto part : split(list, ',')) {
    const auto percent = part.find('%');
    ManagerColumn column{lower(std::string(trim(part.substr(0, percent))))};
    if (std::ranges::find(kKnown, column.key) == kKnown.end()) {
      return fail(Errc::NotFound, "Unknown field '{}'", escape_terminal(column.key, 80));
    }
    if (percent != part.npos) {
      const auto width = parse_number<int>(part.substr(percent + 1));
      if (!width || *width == 0 || std::abs(*width) > 10'000) {
        return fail(Errc::Malformed, "'{}': expected a width after '%'", escape_terminal(part, 80));
      }
      column.width = static_cast<std::size_t>(std::abs(*width));
      column.is_left = *width < 0;
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string cell_of(const Association& row, const std::string& key) {
  if (key == "account" || key == "defaultaccount") return row.account;
  if (key == "cluster") return row.cluster;
  if (key == "user") return row.user;
  return key == "qos" || key == "defaultqos" ? "normal" : "";
}

std::string manager_text(const CommandLine& line, const std::vector<ManagerColumn>& columns,
                         const std::vector<Association>& rows) {
  const bool has_bars = line.has("parsable") || line.has("parsable2");
  const auto row_text = [&](const auto& cell) {
    std::string text;
    for (const auto& column : columns) {
      std::string value = cell(column);
      if (has_bars) {
        text += (text.empty() ? "" : "|") + value;
      } else {
        value.resize(std::min(value.size(), column.width));
        const std::string space(column.width - value.size(), ' ');
        text += column.is_left ? value + space + " " : space + value + " ";
      }
    }
    return text + (line.has("parsable") ? "|\n" : "\n");
  };
  std::string text;
  if (!line.has("noheader")) text = row_text([](const auto& column) { return column.key; });
  for (const auto& row : rows) {
    text += row_text(
        [&](const auto& column) { return escape_terminal(cell_of(row, column.key), 1'000); });
  }
  return text;
}

// "user", "assoc", "account" and "cluster" are what clients ask for.
Result<int> show_manager(HeadLink& head, const Invocation& invocation, const CommandLine& line) {
  const std::string kind = lower(line.words.size() > 1 ? line.words[1] : "");
  std::set<std::string> users, accounts;
  std::string fields = kind.starts_with("account")   ? "account"
                       : kind.starts_with("cluster") ? "cluster"
                       : kind.starts_with("qos")     ? "qos"
                                                     : "cluster,account,user";
  for (std::size_t i = 2; i < line.words.size(); ++i) {
    const auto equals = line.words[i].find('=');
    const std::string name = lower(line.words[i].substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : line.words[i].substr(equals + 1);
    if (name == "format") {
      fields = value;
    } else if (equals == std::string::npos && kind.starts_with("user")) {
      users.insert(line.words[i]);
    } else if (name.starts_with("user") || name == "name" || name == "names") {
      users.merge(std::set<std::string>{value});
    } else if (name.starts_with("account")) {
      accounts.insert(value);
    }
  }
  const auto columns = manager_columns(fields);
  if (!columns) return columns.error();
  std::vector<Association> rows;
  if (kind.starts_with("qos")) {
    rows.push_back({});
  } else if (kind.starts_with("cluster")) {
    const auto info = head.ask<wire::Info>(wire::GetInfo());
    if (!info) return info.error();
    rows.push_back({info->cluster(), "", ""});
  } else if (kind.starts_with("user") || kind.starts_with("assoc") || kind.starts_with("account")) {
    auto found = associations(head);
    if (!found) return found.error();
    rows = std::move(*found);
    const bool by_account = kind.starts_with("account");
    std::erase_if(rows, [&](const Association& row) {
      if (by_account) return !row.user.empty();
      return (!users.empty() && !users.contains(row.user)) ||
             (!accounts.empty() && !accounts.contains(row.account)) ||
             (kind.starts_with("user") && row.user.empty());
    });
  } else {
    return print_failure(
        invocation, fmt::format("show {}: not supported; show user, assoc, account, cluster or qos",
                                escape_terminal(kind, 80)));
  }
  print(manager_text(line, *columns, rows));
  return kExitOk;
}

}  // namespace
}  // namespace slurm

int sacctmgr_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] =
      read_line(invocation, kManagerForms,
                {"[OPTION...] show KIND [NAME=VALUE...]", "shows users and accounts"});
  if (code) return *code;
  const std::string command = line.words.empty() ? "" : lower(line.words[0]);
  if (command != "show" && command != "list") {
    return print_failure(
        invocation, fmt::format("{}: not supported; accounts are in accounts.toml of the head",
                                command.empty() ? "no command" : escape_terminal(command, 80)));
  }
  return ask_head(invocation, [&](HeadLink& head) { return show_manager(head, invocation, line); });
}

int sstat_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] =
      read_line(invocation, kStatForms, {"-j JOB[,JOB...] [OPTION...]", "shows running steps"});
  if (code) return *code;
  if (line.has("helpformat")) return print(account_field_names()), kExitOk;
  Words jobs = split_jobs(line.list("jobs"));
  jobs.insert(jobs.end(), line.words.begin(), line.words.end());
  if (jobs.empty()) return print_failure(invocation, "You didn't give me any jobs to stat.");
  std::string fields = line.list("format") + line.list("fields");
  if (fields.empty()) fields = "jobid,nodelist,ntasks,maxrss,elapsed,state";
  const auto columns = read_account_columns(fields);
  if (!columns) return print_failure(invocation, columns.error());
  const auto style = line.has("parsable2")  ? AccountStyle::Bars
                     : line.has("parsable") ? AccountStyle::BarsAtEnd
                                            : AccountStyle::Table;
  return ask_head(invocation, [&](HeadLink& head) -> Result<int> {
    const auto named = named_jobs(head, jobs);
    if (!named) return named.error();
    std::string text = line.has("noheader") ? "" : account_heading(*columns, style, "|");
    for (const auto& job : named->jobs) {
      if (is_final_state(job.state())) continue;
      for (const auto& row : lines_of(job, true)) {
        if (row.step == nullptr && !row.is_script) continue;
        text += account_text(*columns, row, style, "|");
      }
    }
    print(text);
    return kExitOk;
  });
}

int slurm_commands_main(const Invocation& invocation) {
  std::string directory;
  CLI::App app;
  describe(app, invocation,
           "Makes links in DIR so that Slurm's commands there are those of this cluster");
  app.add_option("dir", directory, "Directory; it is created if it does not exist")
      ->type_name("DIR")
      ->required();
  if (const auto code = parse(app, invocation)) return *code;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return print_error(invocation, fmt::format("cannot create {}: {}",
                                               escape_terminal(directory, 200), error.message()));
  }
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return print_error(invocation, "cannot find this program: " + error.message());
  for (const std::string_view name : kSlurmCommands) {
    const auto link = std::filesystem::path(directory) / name;
    const bool is_link = std::filesystem::is_symlink(link, error);
    if (std::filesystem::exists(link, error) && !is_link) {
      return print_error(invocation, fmt::format("{} exists and is not a link; nothing was changed",
                                                 escape_terminal(link.string(), 200)));
    }
  }
  for (const std::string_view name : kSlurmCommands) {
    const auto link = std::filesystem::path(directory) / name;
    std::filesystem::remove(link, error);
    std::filesystem::create_symlink(self, link, error);
    if (error) {
      return print_error(invocation,
                         fmt::format("cannot create {}: {}", escape_terminal(link.string(), 200),
                                     error.message()));
    }
  }
  return kExitOk;
}

}  // namespace score::scout
