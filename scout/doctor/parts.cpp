#include "scout/doctor/parts.hpp"

#include "base/model/optional_parts.hpp"
#include "base/text/hostlist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace score::scout {
namespace {

std::vector<std::string> nodes_without(const ProbeReport& probe, const base::OptionalPart& part) {
  std::vector<std::string> nodes;
  for (const auto& node : probe.nodes) {
    if (std::ranges::count(node.missing_parts, part.name) != 0) nodes.push_back(node.name);
  }
  return nodes;
}

}  // namespace

void judge_parts(const ProbeReport& probe, Findings& found) {
  for (const auto& part : base::kOptionalParts) {
    for (const auto& node : nodes_without(probe, part)) {
      found.warn(node, fmt::format("{} is missing, for {}", part.name, part.use),
                 std::string(part.remedy));
    }
  }
  found.else_ok(fmt::format("all {} optional parts are there", base::kOptionalParts.size()));
}

std::string parts_page(const Evidence& evidence) {
  if (!evidence.probe) return fmt::format("parts   unknown: {}\n", evidence.why_no_probe);
  std::string page;
  for (const auto& part : base::kOptionalParts) {
    const auto lacking = nodes_without(*evidence.probe, part);
    page += fmt::format("{:<7} {:<24} ", page.empty() ? "parts" : "", part.name);
    page += lacking.empty() ? "on all nodes\n"
                            : fmt::format("not on {}, for {}: {}\n", compress_hostlist(lacking),
                                          part.use, part.remedy);
  }
  return page;
}

void write_parts(JsonWriter& json, const Evidence& evidence) {
  json.key("parts").begin_array();
  for (const auto& part : base::kOptionalParts) {
    if (!evidence.probe) break;
    const auto lacking = nodes_without(*evidence.probe, part);
    json.begin_object().field("name", part.name).field("use", part.use);
    json.list("missing_on", lacking).field("remedy", part.remedy).end_object();
  }
  json.end_array();
}

}  // namespace score::scout
