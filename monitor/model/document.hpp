#pragma once
// Writes the document of docs/reference/stream.md: the head's state and the nodes' measurements as
// one line of JSON. It is pure.

#include "monitor/meters/cluster_meter.hpp"
#include "monitor/model/cluster_view.hpp"
#include "monitor/model/viewer_options.hpp"

#include <compare>
#include <optional>
#include <string>

namespace score::monitor {

// Sight describes the rights of the viewer of a document.
struct Sight {
  std::optional<UserId> user;  // none: not logged in
  bool is_operator = false;

  friend auto operator<=>(const Sight&, const Sight&) = default;
};

struct DocumentOptions {
  std::uint64_t sequence = 0;
  Filter filter;
  Sight sight;
  Duration slices{5s};  // time span of the slices
  Duration window{1s};  // time span of the switch figures
};

[[nodiscard]] std::string write_document(const ClusterView& view, const ClusterMeter& meter,
                                         const DocumentOptions& options);

// Returns true if every task of a running job was measured, so that a document has a load of each.
// A job that gave its slices away does not count.
[[nodiscard]] bool has_all_loads(const ClusterView& view, const ClusterMeter& meter);

}  // namespace score::monitor
