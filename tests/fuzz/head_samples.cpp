// This fuzz target sends measurements of nodes to the head. The input is any number of samples,
// each after its length (two bytes, little-endian), from two nodes in turn. Accepted samples must
// leave a complete document.

#include "base/assert.hpp"
#include "monitor/model/document.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/clients/sample_wire.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace score;

constexpr std::uint32_t kNodes = 2;

std::string document_of(const monitor::ClusterMeter& meter, TimePoint now) {
  monitor::ClusterView view;
  view.now = now;
  view.nodes.resize(kNodes);
  monitor::DocumentOptions options;
  options.slices = 5s;
  return write_document(view, meter, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  monitor::ClusterMeter meter;
  monitor::NodeSample sample;  // reused: fields that a sample omits must not remain
  TimePoint newest{};
  for (std::uint32_t node = 0; rest.size() >= 2; node = (node + 1) % kNodes) {
    const auto low = static_cast<std::uint8_t>(rest[0]), high = static_cast<std::uint8_t>(rest[1]);
    const std::string_view payload = rest.substr(2, std::size_t{low} | std::size_t{high} << 8U);
    rest.remove_prefix(2 + payload.size());
    const auto message = proto::parse<wire::NodeSample>(payload, "NodeSample");
    if (!message || !head::from_wire(*message, sample)) continue;
    SCORE_ASSERT(sample.gangs.size() == static_cast<std::size_t>(message->gangs_size()));
    newest = std::max(newest, sample.taken);
    meter.feed(NodeId(node), sample);
  }
  const std::string document = document_of(meter, newest);
  SCORE_ASSERT(document.starts_with('{') && document.ends_with('}'));
  SCORE_ASSERT(document.find("inf") == document.npos && document.find("nan") == document.npos);
  return 0;
}
