#include "monitor/meters/scratch_meter.hpp"

#include <utility>

namespace score::monitor {

namespace {

// The counters of a server begin at 0 when it is restarted.
std::uint64_t scratch_growth(std::uint64_t now, std::uint64_t before) {
  return now >= before ? now - before : now;
}

}  // namespace

void ScratchMeter::feed(TimePoint taken, const std::vector<VolumeSample>& volumes) {
  std::map<AttemptId, Volume> before = std::exchange(volumes_, {});
  is_known_ = true;
  for (const VolumeSample& sample : volumes) {
    Volume& volume = volumes_[sample.attempt];
    volume.at = taken;
    volume.newest = sample;
    VolumeLoad& load = volume.load;
    load.attempt = sample.attempt;
    load.capacity = sample.capacity;
    load.used = sample.used;
    load.queue = sample.queue;
    load.restarts = sample.restarts;
    load.fallbacks = sample.fallbacks;
    load.is_down = sample.is_down;
    const auto old = before.find(sample.attempt);
    // Work of a server before its first sample may be long ago, so it makes no rate.
    const VolumeSample first = old != before.end() ? old->second.newest : VolumeSample{};
    const std::uint64_t read = scratch_growth(sample.read, first.read);
    const std::uint64_t written = scratch_growth(sample.written, first.written);
    read_ += read;
    written_ += written;
    fallbacks_ += scratch_growth(sample.fallbacks, first.fallbacks);
    if (old == before.end()) continue;
    const double seconds = std::chrono::duration<double>(taken - old->second.at).count();
    if (seconds <= 0) {
      load = old->second.load;
      volume.at = old->second.at;
      continue;
    }
    load.read_rate = static_cast<double>(read) / seconds;
    load.write_rate = static_cast<double>(written) / seconds;
    load.request_rate =
        static_cast<double>(scratch_growth(sample.requests, first.requests)) / seconds;
  }
}

std::optional<std::vector<VolumeLoad>> ScratchMeter::volumes() const {
  if (!is_known_) return std::nullopt;
  std::vector<VolumeLoad> loads;
  for (const auto& [attempt, volume] : volumes_) loads.push_back(volume.load);
  return loads;
}

void ScratchMeter::forget() {
  volumes_.clear();
  is_known_ = false;
}

}  // namespace score::monitor
