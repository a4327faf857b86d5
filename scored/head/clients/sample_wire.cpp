#include "scored/head/clients/sample_wire.hpp"

#include "base/limits.hpp"
#include "proto/convert/fields.hpp"

#include <algorithm>

namespace score::proto {

// The parts of the conversions that are not generated. See Value.check of proto/options.proto.
namespace {

void check_value(FieldCheck& /*check*/, const wire::TaskSample& message,
                 monitor::TaskSample& task) {
  task.pm.reset();
  if (message.has_pm()) {
    task.pm = monitor::PmReading{message.waits_in_pm(),
                                 {message.sent_messages(), message.received_messages(),
                                  message.sent_bytes(), message.received_bytes()}};
  }
}

void check_value(FieldCheck& check, const wire::SwitchRecord& message,
                 monitor::SwitchSample& sample) {
  if (message.restored_ns() == 0) {
    sample.guarded = sample.saved = sample.restored = sample.stopped;
  }
  const std::array times = {sample.woke,  sample.stopped,  sample.guarded,
                            sample.saved, sample.restored, sample.done};
  check.require("done_ns", std::ranges::is_sorted(times), "is not the last of the times");
}

void check_value(FieldCheck& /*check*/, const wire::SwitchTotals& message,
                 monitor::NodeTotals& totals) {
  totals.is_whole = message.phases_size() > 0;
  const int phases = std::min<int>(message.phases_size(), monitor::kSwitchPhases);
  for (int i = 0; i < phases; ++i) {
    auto& phase = totals.phases[static_cast<std::size_t>(i)];
    const auto& buckets = message.phases(i).buckets();
    const auto count = std::min<std::ptrdiff_t>(std::ssize(phase.counts), buckets.size());
    std::copy_n(buckets.begin(), count, phase.counts.begin());
    phase.sum = Duration(std::max<std::int64_t>(message.phases(i).sum_ns(), 0));
  }
}

void check_value(FieldCheck& check, const wire::NodeSample& message,
                 monitor::NodeSample& /*sample*/) {
  check.at_most("scratch", static_cast<std::size_t>(message.scratch_size()),
                limits::kMaxJobsPerNode);
}

}  // namespace

}  // namespace score::proto

#include "proto/samples_values_code.inc"

namespace score::head {

Status from_wire(const wire::NodeSample& message, monitor::NodeSample& sample) {
  proto::FieldCheck check("NodeSample");
  proto::read(check, message, sample);
  return check.result();
}

std::vector<monitor::VolumeSample> volumes_of(const wire::NodeSample& message) {
  proto::FieldCheck check("NodeSample");
  std::vector<monitor::VolumeSample> volumes;
  proto::read_list(check, "scratch", message.scratch(), volumes);
  return volumes;
}

}  // namespace score::head
