#include "scored/node/observe/activity.hpp"

#include "base/limits.hpp"
#include "pmlib/core/segment.hpp"

#include <algorithm>
#include <string_view>

namespace score::node {

namespace {

static_assert(sizeof(pm::WaitNote::call) <= base::limits::kMaxCallName);

// Reads what a waiting context waits for; it stays unknown if the context cannot be read.
base::TaskWait read_wait(int context, std::uint32_t rank) {
  base::TaskWait wait{.rank = rank};
  pm::WaitNote note;
  if (pm::read_wait_note(context, note) != 0) return wait;
  wait.call = std::string_view(note.call.data());
  wait.source = note.source;
  wait.tag = note.tag;
  wait.bytes = note.bytes;
  return wait;
}

}  // namespace

base::Activity read_activity(bool is_idle, const ContextSet* contexts) {
  base::Activity activity{.idle = is_idle};
  if (contexts == nullptr || contexts->empty()) return activity;
  activity.waits = is_idle;
  for (const UniqueFd& context : *contexts) {
    pm::SegmentSummary summary;
    if (pm::read_summary(context.get(), summary) != 0) {
      activity.waits = false;
      continue;
    }
    activity.waits = activity.waits && summary.waits;
    activity.sent += summary.counters.messages_sent;
    activity.received += summary.counters.messages_received;
    const bool is_known = is_idle && summary.waits;
    if (is_known && activity.tasks.size() < base::limits::kMaxTaskWaits) {
      activity.tasks.push_back(read_wait(context.get(), summary.rank));
    }
  }
  return activity;
}

}  // namespace score::node
