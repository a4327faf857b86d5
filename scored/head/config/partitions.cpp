#include "scored/head/config/partitions.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace score::head {
namespace {

constexpr std::int32_t kMostOrder = 1'000;
constexpr Duration kMostTime = 24h * 365;

// The tables of all partitions are read with this.
struct Reader {
  const std::set<std::string>& known_nodes;
  const AccountRules& accounts;

  void read_nodes(ConfigSection& section, PartitionRule& out) const;
  void read_access(ConfigSection& section, PartitionRule& out) const;
  [[nodiscard]] PartitionRule read(const std::string& name, ConfigSection& section) const;
};

void Reader::read_nodes(ConfigSection& section, PartitionRule& out) const {
  std::string text;
  section.read("nodes", text);
  auto names = expand_hostlist(text);
  if (!names) return section.refuse("nodes", plain_text(names.error()));
  if (names->empty()) {
    return section.refuse("nodes", fmt::format("partition {} needs at least one node", out.name));
  }
  std::set<std::string> seen;
  for (const std::string& name : *names) {
    if (!known_nodes.contains(name)) {
      return section.refuse(
          "nodes", fmt::format("{} is not one of the nodes of [head]", escape_terminal(name, 80)));
    }
    if (seen.insert(name).second) out.nodes.push_back(name);
  }
}

void Reader::read_access(ConfigSection& section, PartitionRule& out) const {
  section.read("users", out.users);
  for (const std::string& user : out.users) {
    if (user.empty() || user == "@") section.refuse("users", "a user or group has an empty name");
  }
  section.read("accounts", out.accounts);
  for (const std::string& account : out.accounts) {
    if (accounts.find(account) != nullptr) continue;
    section.refuse("accounts",
                   fmt::format("there is no table [accounts.{}]", escape_terminal(account, 80)));
  }
}

PartitionRule Reader::read(const std::string& name, ConfigSection& section) const {
  PartitionRule out;
  out.name = escape_terminal(name, 80);
  if (!is_host_name(name)) {
    section.refuse("nodes", "partition names have letters, digits, '-' only");
  }
  read_nodes(section, out);
  read_access(section, out);
  section.read("default", out.is_default);
  section.read("order", out.order, -kMostOrder, kMostOrder);
  section.read("max_time", out.max_time, 1s, kMostTime);
  section.read("fill", out.fill);
  section.read("max_jobs", out.max_jobs, 1U, limits::kMaxActiveJobs);
  section.read("max_running_jobs", out.limits.max_running_jobs, 1U, limits::kMaxActiveJobs);
  section.read("max_nodes", out.limits.max_nodes, 1U, UINT32_MAX);
  section.read("max_memory", out.limits.max_memory, Bytes(1));
  return out;
}

bool may_use(const PartitionRule& partition, const Submitter& who, const std::string& account) {
  if (!who.is_limited || (partition.users.empty() && partition.accounts.empty())) return true;
  return is_named(partition.users, who) ||
         std::ranges::find(partition.accounts, account) != partition.accounts.end();
}

std::string names_of(const PartitionRules& rules, const Submitter& who,
                     const std::string& account) {
  std::string names;
  for (const PartitionRule& one : rules.all) {
    if (may_use(one, who, account)) names += (names.empty() ? "" : ", ") + one.name;
  }
  return names.empty() ? "there is none for you" : "yours: " + names;
}

// Returns the limit that the job reaches first; 0 if it has none.
Duration limit_of(const ResourceRequest& request) {
  if (request.scheduled_limit == 0s) return request.wall_limit;
  if (request.wall_limit == 0s) return request.scheduled_limit;
  return std::min(request.scheduled_limit, request.wall_limit);
}

Status check_time(const PartitionRule& partition, ResourceRequest& request) {
  const Duration limit = limit_of(request);
  if (limit == 0s) request.scheduled_limit = partition.max_time;
  if (limit <= partition.max_time) return {};
  return fail(Errc::Denied,
              "requested a time limit of {}; partitions.{}.max_time of the head is {}",
              format_duration(limit), partition.name, format_duration(partition.max_time));
}

}  // namespace

const PartitionRule* PartitionRules::find(std::string_view name) const {
  const auto found = std::ranges::find(all, name, &PartitionRule::name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> PartitionRules::groups() const {
  std::vector<std::string> names;
  for (const PartitionRule& one : all) {
    for (const std::string& user : one.users) {
      if (user.starts_with('@')) names.push_back(user.substr(1));
    }
  }
  return names;
}

std::vector<gang::Partition> PartitionRules::for_cluster() const {
  std::vector<gang::Partition> out;
  for (const PartitionRule& one : all) {
    out.push_back({one.name, {one.nodes.begin(), one.nodes.end()}, one.order});
  }
  return out;
}

std::vector<std::string> PartitionRules::of_node(std::string_view node) const {
  std::vector<std::string> names;
  for (const PartitionRule& one : all) {
    if (std::ranges::find(one.nodes, node) != one.nodes.end()) names.push_back(one.name);
  }
  return names;
}

PartitionRules read_partitions(ConfigSection& root, const std::vector<std::string>& nodes,
                               const AccountRules& accounts) {
  PartitionRules out;
  const std::set<std::string> known(nodes.begin(), nodes.end());
  const Reader reader{known, accounts};
  std::string standard;
  for (auto& [name, section] : root.named_sections("partitions")) {
    out.all.push_back(reader.read(name, section));
    const PartitionRule& one = out.all.back();
    if (one.is_default && !standard.empty()) {
      section.refuse("default", fmt::format("partition {} is the default already", standard));
    }
    if (one.is_default) standard = one.name;
    if (out.all.size() == limits::kMaxPartitions + 1) {
      section.refuse("nodes", fmt::format("more than {} partitions", limits::kMaxPartitions));
    }
  }
  if (out.groups().size() > kMaxAccountGroups) {
    root.section("partitions")
        .refuse(out.all.front().name,
                fmt::format("the partitions name more than {} groups", kMaxAccountGroups));
  }
  return out;
}

Status enter_partition(const PartitionRules& rules, const Submitter& who,
                       ResourceRequest& request) {
  if (request.partition.empty() && !request.overlay) {
    const auto standard = std::ranges::find(rules.all, true, &PartitionRule::is_default);
    if (standard != rules.all.end()) request.partition = standard->name;
  }
  if (request.partition.empty()) return {};
  const std::string name = escape_terminal(request.partition, 80);
  const PartitionRule* partition = rules.find(request.partition);
  if (partition == nullptr) {
    return fail(Errc::NotFound, "no partition {}: {}", name,
                rules.all.empty() ? "this cluster has no partitions"
                                  : names_of(rules, who, request.account));
  }
  if (!may_use(*partition, who, request.account)) {
    return fail(Errc::Denied, "user {} may not use partition {}; {}", who.name, name,
                names_of(rules, who, request.account));
  }
  if (!partition->fill) request.no_fill = true;
  if (!who.is_limited) return {};
  if (auto fits = check_one(partition->limits, "partitions." + partition->name, request); !fits) {
    return fits;
  }
  return partition->max_time > 0s ? check_time(*partition, request) : Status();
}

Status check_partition_jobs(const PartitionRules& rules, const Submitter& who,
                            const std::string& name, std::size_t jobs) {
  const PartitionRule* partition = who.is_limited ? rules.find(name) : nullptr;
  if (partition == nullptr || partition->max_jobs == 0 || jobs < partition->max_jobs) return {};
  return fail(Errc::Denied,
              "user {} has {} queued or running in partition {}; partitions.{}.max_jobs of the "
              "head is {}",
              who.name, counted(jobs, "job"), name, name, partition->max_jobs);
}

}  // namespace score::head
