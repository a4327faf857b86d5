// This file is tested by gres_test.cpp.
#include "gang/resources/demands.hpp"

#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "gang/resources/unit_registry.hpp"

#include <algorithm>
#include <set>

namespace score::gang {

using base::Errc;
using base::fail;
using base::Result;

namespace {

// Converts "a|b" to "'a' or 'b'".
std::string quoted(const std::string& clause) {
  std::string out;
  for (const auto name : base::split(clause, '|')) {
    out += fmt::format("{}'{}'", out.empty() ? "" : " or ", name);
  }
  return out;
}

Result<void> check_features(const NodeTable& nodes, const base::ResourceRequest& request) {
  const auto has_any = [&nodes](const std::vector<std::string>& wanted) {
    return std::ranges::any_of(nodes.all(), [&wanted](const Node& node) {
      return !node.removed && (!node.seen || base::has_features(node.info.features, wanted));
    });
  };
  for (const std::string& clause : request.features) {
    if (!has_any({clause})) return fail(Errc::NotFound, "no node has feature {}", quoted(clause));
  }
  if (has_any(request.features)) return {};
  return fail(Errc::NotFound, "no node has all of '{}'", base::format_constraint(request.features));
}

// Offered describes the nodes that qualify.
struct Offered {
  bool all_seen = true;
  std::set<std::string> kinds;
  std::uint32_t count = 0;  // most of one kind on a node
  std::string with_count;
  base::Bytes memory{0};  // likewise
  std::string with_memory;
  std::uint32_t nodes = 0;  // nodes that have all
};

Offered offered_of(const NodeTable& nodes, const base::ResourceRequest& request,
                   const std::vector<bool>& allowed, const std::string& name) {
  Offered out;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    if (!allowed.empty() && !allowed[index]) continue;
    const Node& node = nodes[index];
    if (node.removed) continue;
    out.all_seen &= node.seen;
    if (offers(node.info.generic, request.generic)) ++out.nodes;
    for (const base::GenericResource& kind : node.info.generic) {
      out.kinds.insert(kind.name);
      if (kind.name != name) continue;
      if (kind.count > out.count) out.count = kind.count, out.with_count = node.info.name;
      if (kind.memory > out.memory) out.memory = kind.memory, out.with_memory = node.info.name;
    }
  }
  return out;
}

Result<void> check_kind(const base::GenericResource& want, const Offered& offered) {
  if (offered.count == 0) {
    const std::string kinds = fmt::format("{}", fmt::join(offered.kinds, ", "));
    return fail(Errc::NotFound, "no node has generic resource '{}'{}{}", want.name,
                kinds.empty() ? "" : "; there are: ", kinds);
  }
  if (offered.count < want.count) {
    return fail(Errc::TooLarge, "requested {} {} per node; the node with most has {} ({})",
                want.count, want.name, offered.count, offered.with_count);
  }
  if (offered.memory >= want.memory) return {};
  if (offered.memory == base::Bytes{0}) {
    return fail(Errc::TooLarge, "requested {} of each {}; the nodes do not report how much one has",
                base::human_bytes(want.memory), want.name);
  }
  return fail(Errc::TooLarge, "requested {} of each {}; the largest has {} ({})",
              base::human_bytes(want.memory), want.name, base::human_bytes(offered.memory),
              offered.with_memory);
}

}  // namespace

bool may_have_features(const Node& node, const base::ResourceRequest& request) {
  return !node.seen || base::has_features(node.info.features, request.features);
}

Result<void> check_demands(const NodeTable& nodes, const base::ResourceRequest& request,
                           const std::vector<bool>& allowed, std::uint32_t count) {
  if (auto known = check_features(nodes, request); !known) return known;
  if (request.generic.empty()) return {};
  if (request.overlay) {
    return fail(Errc::Unsupported, "a job that takes no cores gets no generic resources");
  }
  for (const base::GenericResource& want : request.generic) {
    const Offered offered = offered_of(nodes, request, allowed, want.name);
    if (!offered.all_seen) return {};
    if (auto kind = check_kind(want, offered); !kind) return kind;
  }
  const Offered offered = offered_of(nodes, request, allowed, {});
  if (offered.nodes >= std::max(1U, count)) return {};
  return fail(Errc::TooLarge, "requested {} with {}; {} {} that",
              base::counted(std::max(1U, count), "node"), base::format_generic(request.generic),
              offered.nodes, offered.nodes == 1 ? "has" : "have");
}

}  // namespace score::gang
