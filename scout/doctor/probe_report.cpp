#include "scout/doctor/probe_report.hpp"

#include "base/limits.hpp"
#include "base/model/optional_parts.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace score::scout {
namespace {

using WordViews = std::vector<std::string_view>;

constexpr std::size_t kMostMpis = 64;      // per node
constexpr std::size_t kMostPrograms = 16;  // per node

std::string text_of(std::string_view word) {
  return word == "-" ? "" : escape_terminal(word, 1000);
}

class Reader {
 public:
  void read(std::string_view line);
  ProbeReport finish();

 private:
  struct RankPair {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    ProbedPair pair;
  };

  void read_fact(ProbedNode& node, const WordViews& words) const;
  void read_pair(std::uint32_t rank, const WordViews& words);

  std::map<std::uint32_t, ProbedNode> nodes_;  // by rank
  std::vector<RankPair> pairs_;
};

void Reader::read(std::string_view line) {
  const auto colon = line.find(": ");
  if (colon == line.npos) return;
  const auto rank = parse_number<std::uint32_t>(line.substr(0, colon));
  const WordViews words = split(line.substr(colon + 2), '\t');
  if (!rank || *rank >= limits::kMaxNodes) return;
  if (words[0] == "node" && words.size() == 3 && is_host_name(words[1])) {
    nodes_[*rank].name = words[1];
    return;
  }
  const auto node = nodes_.find(*rank);
  if (node == nodes_.end()) return;
  if (words[0] == "pair") return read_pair(*rank, words);
  read_fact(node->second, words);
}

void Reader::read_fact(ProbedNode& node, const WordViews& words) const {
  if (words[0] == "memlock" && words.size() == 3) {
    node.memlock = parse_number<std::uint64_t>(words[2]).value_or(0);
  } else if (words[0] == "shm" && words.size() == 2) {
    node.shm = parse_number<std::uint64_t>(words[1]).value_or(0);
  } else if (words[0] == "pm" && words.size() == 3) {
    node.pm = text_of(words[1]);
    node.provider = text_of(words[2]);
  } else if (words[0] == "mpi" && words.size() == 3 && node.mpis.size() < kMostMpis) {
    node.mpis.push_back({text_of(words[1]), text_of(words[2])});
  } else if (words[0] == "part" && words.size() == 3 && words[2] == "missing") {
    const auto* part = base::find_optional_part(words[1]);
    const bool is_new = part != nullptr && std::ranges::count(node.missing_parts, part->name) == 0;
    if (is_new) node.missing_parts.push_back(part->name);
  } else if (words[0] == "readable" && words.size() == 2) {
    if (node.readable_programs.size() < kMostPrograms)
      node.readable_programs.push_back(text_of(words[1]));
  } else if (words[0] == "network" && words.size() == 2) {
    node.network_error = text_of(words[1]);
  }
}

void Reader::read_pair(std::uint32_t rank, const WordViews& words) {
  if (words.size() != 4 || pairs_.size() >= limits::kMaxNodes * 16) return;
  const auto to = parse_number<std::uint32_t>(words[1]);
  const auto speed = parse_number<std::uint64_t>(words[3]);
  if (!to || !speed) return;
  RankPair one{rank, *to, {}};
  if (words[2] != "-") {
    const auto trip = parse_number<std::int64_t>(words[2]);
    if (!trip || *trip < 0) return;
    one.pair.round_trip_ns = *trip;
    if (*speed > 0) one.pair.bytes_per_second = static_cast<double>(*speed);
  }
  pairs_.push_back(std::move(one));
}

ProbeReport Reader::finish() {
  ProbeReport report;
  for (auto& one : pairs_) {
    const auto from = nodes_.find(one.from);
    const auto to = nodes_.find(one.to);
    if (from == nodes_.end() || to == nodes_.end()) continue;
    one.pair.from = from->second.name;
    one.pair.to = to->second.name;
    report.pairs.push_back(std::move(one.pair));
  }
  for (auto& [rank, node] : nodes_) report.nodes.push_back(std::move(node));
  return report;
}

}  // namespace

ProbeReport parse_probe_report(std::string_view output) {
  Reader reader;
  for (const auto line : split(output, '\n')) reader.read(line);
  return reader.finish();
}

}  // namespace score::scout
