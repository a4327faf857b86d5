#include "scored/node/observe/activity.hpp"

#include "pmlib/core/segment.hpp"

namespace score::node {

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
  }
  return activity;
}

}  // namespace score::node
