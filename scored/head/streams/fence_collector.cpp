#include "scored/head/streams/fence_collector.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

// All key-values must fit into one FenceDone (64 MiB), with room for the rest of the message.
constexpr std::size_t kMaxFenceBytes = 64 * limits::kMiB - limits::kKiB;

}  // namespace

void FenceCollector::open(AttemptId attempt, std::size_t nodes) {
  Collection& collector = collectors_[attempt];
  if (!collector.entered.empty()) return;
  collector.entered.resize(nodes);
  collector.left.resize(nodes);
}

void FenceCollector::close(AttemptId attempt) {
  collectors_.erase(attempt);
}

Result<std::optional<FenceCollector::Done>> FenceCollector::enter(AttemptId attempt,
                                                                  std::size_t node_index,
                                                                  std::uint64_t sequence,
                                                                  std::string key_values) {
  const auto found = collectors_.find(attempt);
  if (found == collectors_.end() || node_index >= found->second.entered.size()) {
    return fail(Errc::NotFound, "cannot enter a fence of attempt {}", attempt);
  }
  Collection& collector = found->second;
  if (collector.last && sequence <= collector.last->sequence) {
    if (sequence < collector.last->sequence)
      return fail(Errc::WrongState, "the fence has already ended");
    Done again = *collector.last;
    again.for_all = false;
    return std::optional(std::move(again));
  }
  if (collector.count > 0 && sequence != collector.sequence) {
    return fail(Errc::WrongState, "nodes wait in different PMI barriers ({} and {})",
                collector.sequence, sequence);
  }
  auto& mine = collector.entered[node_index];
  if (mine) return std::optional<Done>();
  if (collector.bytes + key_values.size() > kMaxFenceBytes) {
    return fail(Errc::TooLarge, "PMI key-values of all ranks exceed {} bytes", kMaxFenceBytes);
  }
  collector.sequence = sequence;
  collector.bytes += key_values.size();
  mine = std::move(key_values);
  ++collector.count;
  if (collector.left[node_index]) --collector.absent;
  return try_finish(collector);
}

std::optional<FenceCollector::Done> FenceCollector::leave(AttemptId attempt,
                                                          std::size_t node_index) {
  const auto found = collectors_.find(attempt);
  if (found == collectors_.end() || node_index >= found->second.left.size()) return std::nullopt;
  Collection& collector = found->second;
  if (collector.left[node_index]) return std::nullopt;
  collector.left[node_index] = true;
  if (!collector.entered[node_index]) ++collector.absent;
  return try_finish(collector);
}

std::optional<FenceCollector::Done> FenceCollector::try_finish(Collection& collector) {
  if (collector.count == 0 || collector.count + collector.absent < collector.entered.size())
    return std::nullopt;
  Done done;
  done.sequence = collector.sequence;
  done.key_values.reserve(collector.bytes);
  for (auto& of_node : collector.entered) {
    if (of_node) done.key_values += *of_node;
    of_node.reset();
  }
  collector.count = 0;
  collector.absent = static_cast<std::size_t>(std::ranges::count(collector.left, true));
  collector.bytes = 0;
  collector.last = done;
  return done;
}

}  // namespace score::head
