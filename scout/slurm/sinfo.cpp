// sinfo lists nodes in groups that have the same values, once for each partition.
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scout/slurm/cluster_list.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/format.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <utility>

namespace score::scout {

namespace slurm {
namespace {

constexpr std::array kForms = {
    OptionForm{"all", 'a'},
    OptionForm{"clusters", 'M', Takes::Value},
    OptionForm{"dead", 'd'},
    OptionForm{"exact", 'e'},
    OptionForm{"federation"},
    OptionForm{"format", 'o', Takes::Value},
    OptionForm{"Format", 'O', Takes::Value},
    OptionForm{"hide"},
    OptionForm{"iterate", 'i', Takes::Value},
    OptionForm{"list-reasons", 'R'},
    OptionForm{"local"},
    OptionForm{"long", 'l'},
    OptionForm{"Node", 'N'},
    OptionForm{"nodes", 'n', Takes::Value},
    OptionForm{"noconvert"},
    OptionForm{"noheader", 'h'},
    OptionForm{"partition", 'p', Takes::Value},
    OptionForm{"reservation", 'T'},
    OptionForm{"responding", 'r'},
    OptionForm{"states", 't', Takes::Value},
    OptionForm{"summarize", 's'},
    OptionForm{"verbose", 'v'},
};

// Group has the nodes of one line. Cells that are not about single nodes read the first one.
struct Group {
  std::string partition;
  std::vector<NodeRow> nodes;
  std::string version;

  [[nodiscard]] const NodeRow& first() const { return nodes.front(); }

  template <class Count>
  [[nodiscard]] std::uint64_t sum(Count count) const {
    std::uint64_t all = 0;
    for (const NodeRow& node : nodes) all += count(node);
    return all;
  }
};

std::string plain_partition(const Group& group) {
  return group.partition;
}

std::string marked_partition(const Group& group) {
  return group.partition + (group.partition == kDefaultPartition ? "*" : "");
}

std::string names(const Group& group) {
  std::vector<std::string> list;
  for (const NodeRow& node : group.nodes) list.emplace_back(node.status.name());
  return compress_hostlist(list);
}

std::string node_number(const Group& group) {
  return std::to_string(group.nodes.size());
}

bool is_usable(const NodeRow& node) {
  return node.status.state() == wire::NodeStatus::UP && !node.status.drained();
}

std::uint64_t used(const NodeRow& node) {
  return node.used_cores;
}

std::uint64_t idle(const NodeRow& node) {
  return is_usable(node) ? node.status.cores() - node.used_cores : 0;
}

std::uint64_t all(const NodeRow& node) {
  return node.status.cores();
}

std::string core_numbers(const Group& group) {
  const auto [a, i, t] = std::array{group.sum(used), group.sum(idle), group.sum(all)};
  return fmt::format("{}/{}/{}/{}", a, i, t - a - i, t);
}

std::string node_numbers(const Group& group) {
  const auto busy = group.sum([](const NodeRow& n) -> std::uint64_t { return n.used_cores > 0; });
  const auto free = group.sum(
      [](const NodeRow& n) -> std::uint64_t { return n.used_cores == 0 && is_usable(n); });
  return fmt::format("{}/{}/{}/{}", busy, free, group.nodes.size() - busy - free,
                     group.nodes.size());
}

std::string cores(const Group& group) {
  return std::to_string(group.first().status.cores());
}

std::string shape(const Group& group) {
  return fmt::format("1:{}:1", group.first().status.cores());
}

std::string memory(const Group& group) {
  return std::to_string(group.first().status.memory_bytes() >> 20U);
}

std::string free_memory(const Group& group) {
  const auto& status = group.first().status;
  return std::to_string((status.memory_bytes() - status.memory_reserved_bytes()) >> 20U);
}

std::string features(const Group& group) {
  std::string text;
  for (const auto& feature : group.first().status.features())
    text += (text.empty() ? "" : ",") + feature;
  return text.empty() ? "(null)" : text;
}

std::string generic_of(const google::protobuf::RepeatedPtrField<wire::GenericResource>& kinds) {
  std::string text;
  for (const auto& kind : kinds) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", kind.name(), kind.count());
  }
  return text.empty() ? "(null)" : text;
}

std::string generic(const Group& group) {
  return generic_of(group.first().status.generic());
}

std::string generic_used(const Group& group) {
  return generic_of(group.first().status.generic_used());
}

std::string reason(const Group& group) {
  const auto& text = group.first().status.reason();
  return text.empty() ? "none" : text;
}

template <char... Text>
std::string fixed(const Group& /*group*/) {
  return {Text...};
}

using NodeField = Field<Group>;

constexpr std::array kFields = {
    NodeField{'P', "Partition", "PARTITION", marked_partition},
    NodeField{'R', "PartitionName", "PARTITION", plain_partition},
    NodeField{'a', "Available", "AVAIL", fixed<'u', 'p'>},
    NodeField{'l', "Time", "TIMELIMIT", fixed<'i', 'n', 'f', 'i', 'n', 'i', 't', 'e'>},
    NodeField{'L', "DefaultTime", "DEFAULTTIME", fixed<'n', '/', 'a'>},
    NodeField{'D', "Nodes", "NODES", node_number},
    NodeField{'t', "StateCompact", "STATE", [](const Group& g) { return short_state(g.first()); }},
    NodeField{'T', "StateLong", "STATE", [](const Group& g) { return node_state(g.first()); }},
    NodeField{'N', "NodeList", "NODELIST", names},
    NodeField{'n', "NodeHost", "HOSTNAMES", names},
    NodeField{'o', "NodeAddr", "NODE_ADDR", names},
    NodeField{'c', "CPUs", "CPUS", cores},
    NodeField{'C', "CPUsState", "CPUS(A/I/O/T)", core_numbers},
    NodeField{'F', "NodeAIOT", "NODES(A/I/O/T)", node_numbers},
    NodeField{'m', "Memory", "MEMORY", memory},
    NodeField{'e', "FreeMem", "FREE_MEM", free_memory},
    NodeField{'d', "Disk", "TMP_DISK", fixed<'0'>},
    NodeField{'f', "Features", "AVAIL_FEATURES", features},
    NodeField{'b', "Features_act", "ACTIVE_FEATURES", features},
    NodeField{'G', "Gres", "GRES", generic},
    NodeField{0, "GresUsed", "GRES_USED", generic_used},
    NodeField{'E', "Reason", "REASON", reason},
    NodeField{'z', "SocketCoreThread", "S:C:T", shape},
    NodeField{'X', "Sockets", "SOCKETS", fixed<'1'>},
    NodeField{'Y', "Cores", "CORES", cores},
    NodeField{'Z', "Threads", "THREADS", fixed<'1'>},
    NodeField{'O', "CPUsLoad", "CPU_LOAD", fixed<'N', '/', 'A'>},
    NodeField{'s', "Size", "JOB_SIZE", fixed<'1', '-', 'i', 'n', 'f', 'i', 'n', 'i', 't', 'e'>},
    NodeField{'h', "OverSubscribe", "OVERSUBSCRIBE", fixed<'Y', 'E', 'S'>},
    NodeField{'g', "Groups", "GROUPS", fixed<'a', 'l', 'l'>},
    NodeField{'r', "Root", "ROOT", fixed<'n', 'o'>},
    NodeField{'w', "Weight", "WEIGHT", fixed<'1'>},
    NodeField{'u', "User", "USER", fixed<'N', '/', 'A'>},
    NodeField{'H', "Timestamp", "TIMESTAMP", fixed<'U', 'n', 'k', 'n', 'o', 'w', 'n'>},
    NodeField{'v', "Version", "VERSION", [](const Group& g) { return g.version; }},
};

constexpr const char* kPartitions = "%9P %.5a %.10l %.6D %.6t %N";
constexpr const char* kLongPartitions = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
constexpr const char* kNodes = "%N %.6D %.9P %6t";
constexpr const char* kLongNodes = "%N %.6D %.9P %11T %4c %.8z %.6m %.8d %.6w %.8f %20E";
constexpr const char* kSummary = "%9P %.5a %.10l %.16F  %N";
constexpr const char* kReasons = "%20E %9u %19H %N";

using Columns = std::vector<ChosenColumn<Group>>;

std::string letters_of(const CommandLine& line) {
  if (const auto given = line.last("format")) return *given;
  if (line.has("list-reasons")) return kReasons;
  if (line.has("summarize")) return kSummary;
  if (line.has("Node")) return line.has("long") ? kLongNodes : kNodes;
  if (line.has("long")) return kLongPartitions;
  const char* variable = std::getenv("SINFO_FORMAT");
  return variable != nullptr ? variable : kPartitions;
}

Result<Columns> columns_of(const CommandLine& line) {
  const bool has_names = line.has("Format");
  auto columns = has_names ? read_names(line.list("Format")) : read_letters(letters_of(line));
  if (!columns) return columns.error();
  return choose_fields<Group>(kFields, std::move(*columns), !has_names);
}

struct Filter {
  WordSet partitions, states, nodes;
};

bool has_state(const WordSet& states, const NodeRow& node) {
  if (states.empty()) return true;
  const std::string full = node_state(node);
  const std::string compact = short_state(node);
  return std::ranges::any_of(states, [&](const std::string& given) {
    std::string word = given;
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool is_drain = word == "drain" && node.status.drained();
    return word == "all" || word == full || word == compact || is_drain;
  });
}

// Nodes whose cells other than their names and numbers are equal share a line.
std::vector<Group> groups_of(const ClusterRows& rows, const Filter& filter, const Columns& columns,
                             bool by_node) {
  constexpr std::string_view kSummed = "DNnoFC";
  std::vector<Group> groups;
  std::map<std::string, std::size_t> found;
  const auto shows_partition = std::ranges::any_of(columns, [](const auto& column) {
    return column.field->letter == 'P' || column.field->letter == 'R';
  });
  for (const std::string& partition : partitions_of(rows.info)) {
    if (!filter.partitions.empty() && !filter.partitions.contains(partition)) continue;
    for (const NodeRow& node : rows.nodes) {
      const bool is_named = filter.nodes.empty() || filter.nodes.contains(node.status.name());
      if (!is_named || !has_state(filter.states, node)) continue;
      Group alone{partition, {node}, rows.info.version()};
      std::string key = by_node ? node.status.name() + "\n" : "";
      for (const auto& [column, field] : columns) {
        const bool is_summed = field->letter != 0 && kSummed.find(field->letter) != kSummed.npos;
        if (!is_summed) key += field->cell(alone) + "\n";
      }
      const auto [at, is_new] = found.emplace(key, groups.size());
      if (is_new) {
        groups.push_back(std::move(alone));
      } else {
        groups[at->second].nodes.push_back(node);
      }
    }
    if (!shows_partition && filter.partitions.empty()) break;
  }
  return groups;
}

}  // namespace
}  // namespace slurm

int sinfo_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] = read_line(invocation, kForms, {"[OPTION...]", "lists nodes"});
  if (code) return *code;
  const auto columns = columns_of(line);
  if (!columns) return print_failure(invocation, columns.error());
  Filter filter{word_set(line.list("partition")), word_set(line.list("states")), {}};
  if (line.has("list-reasons")) filter.states = {"drain", "down"};
  if (line.has("dead")) filter.states = {"down", "unk"};
  if (const auto nodes = line.last("nodes")) {
    const auto names = expand_hostlist(*nodes);
    if (!names) return print_failure(invocation, names.error().with_context("--nodes"));
    filter.nodes.insert(names->begin(), names->end());
  }
  return ask_head(invocation, [&](HeadLink& head) -> Result<int> {
    const auto rows = ask_cluster(head);
    if (!rows) return rows.error();
    std::string text = line.has("noheader") ? "" : heading_line(*columns);
    for (const auto& group : groups_of(*rows, filter, *columns, line.has("Node"))) {
      text += item_line(*columns, group);
    }
    print(text);
    return kExitOk;
  });
}

}  // namespace score::scout
