#include "scored/node/attempts/usage_samples.hpp"

#include "monitor/meters/job_profile.hpp"
#include "scored/node/attempts/attempt_usage.hpp"

#include <algorithm>

namespace score::node {

namespace {

constexpr int kMostInOne = 1'000;  // attempts in one frame

Duration cpu_of(const base::Usage& usage) {
  return usage.cpu_user + usage.cpu_system;
}

}  // namespace

void UsageSamples::begin(Attempt& attempt) const {
  attempt.reported = usage_of(parts_, attempt, {});
}

void UsageSamples::sample(const std::map<AttemptId, AttemptPtr>& attempts) {
  for (const auto& [id, attempt] : attempts) sample_memory(parts_, *attempt);
  const Duration now = wall_now().time_since_epoch() / monitor::JobProfile::kReportPeriod *
                       Duration{monitor::JobProfile::kReportPeriod};
  if (now == last_ || !takes_samples_ || !parts_.head.is_greeted()) return;
  last_ = now;
  report(attempts);
}

void UsageSamples::report(const std::map<AttemptId, AttemptPtr>& attempts) const {
  wire::UsageSample sample;
  const auto send = [&] {
    if (sample.uses_size() > 0) parts_.head.send(sample);
    sample.clear_uses();
  };
  for (const auto& [id, attempt] : attempts) {
    if (attempt->tasks.empty() || attempt->is_retired) continue;
    const base::Usage before = std::exchange(attempt->reported, usage_of(parts_, *attempt, {}));
    const base::Usage& now = attempt->reported;
    wire::AttemptUse& use = *sample.add_uses();
    use.set_attempt(id.value());
    use.set_cpu_ns(std::max(cpu_of(now) - cpu_of(before), Duration{0}).count());
    use.set_memory_bytes(std::exchange(attempt->memory_lately, Bytes{0}).value());
    use.set_pm_sent_bytes(now.pm_sent > before.pm_sent ? (now.pm_sent - before.pm_sent).value()
                                                       : 0);
    if (sample.uses_size() == kMostInOne) send();
  }
  send();
}

}  // namespace score::node
