#include "scored/node/observe/overdue.hpp"

#include "base/os/log.hpp"
#include "proto/convert/convert.hpp"

namespace score::node {

void thaw_overdue(Switcher& switcher, HeadLink& head, const std::string& node, Epoch epoch) {
  for (const auto& [attempt, stopped] : switcher.thaw_overdue(monotonic_now())) {
    log_error("Job was frozen for longer than its timetable explains; applied the timetable again",
              kv("node", node), kv("job", base::job_of(attempt)),
              kv("frozen", format_duration(stopped)));
    if (!head.is_greeted()) continue;
    const auto frame = proto::encode(base::NodeToHead(base::TimetableApplied{epoch, stopped}));
    head.send(frame.type, frame.payload);
  }
}

}  // namespace score::node
