// The tests are in programs_test.cpp and tests/integration/test_scratch.py.
#include "scout/run/demands.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace score::scout {

namespace {

constexpr Bytes kLeastScratch(limits::kMiB);

Status add_scratch(const DemandOptions& options, wire::ResourceRequest& resources) {
  if (options.scratch.empty()) return {};
  const auto size = parse_bytes(options.scratch);
  if (!size)
    return size.error().with_context("--scratch '{}'", escape_terminal(options.scratch, 80));
  if (*size < kLeastScratch) {
    return fail(Errc::Malformed, "--scratch {}: less than 1M; a bare number means bytes (100G, 2T)",
                escape_terminal(options.scratch, 80));
  }
  resources.set_scratch_bytes(size->value());
  return {};
}

}  // namespace

Status add_demands(const DemandOptions& options, wire::ResourceRequest& resources) {
  if (!options.constraint.empty()) {
    const auto features = parse_constraint(options.constraint);
    if (!features) return features.error().with_context("--constraint");
    for (const auto& feature : *features) resources.add_features(feature);
  }
  if (auto added = add_scratch(options, resources); !added) return added;
  if (options.generic.empty() || options.generic == "none") return {};
  const auto generic = parse_generic(options.generic);
  if (!generic) return generic.error().with_context("--gres");
  for (const auto& one : *generic) {
    auto& added = *resources.add_generic();
    added.set_name(one.name);
    added.set_count(one.count);
    added.set_memory_bytes(one.memory.value());
  }
  return {};
}

}  // namespace score::scout
