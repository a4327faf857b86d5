// A message has 8 bytes: the round and the kind. In the stream it is as long as PM allows.
#include "scored/job/probe/pair_test.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace score::probe {
namespace {

constexpr Duration kFirstAnswer = 2s;  // the other rank may be stopped by the scheduler, or start
                                       // late
constexpr Duration kMostPings = 1s;
constexpr Duration kStream = 4s;
constexpr Duration kLastAcknowledgement = 200ms;
constexpr std::size_t kPings = 100;
constexpr std::size_t kStreamBytes = std::size_t{4} << 20U;

enum class Kind : std::uint32_t { Ping, Pong, Part, Last, Got };

struct Head {
  std::uint32_t round = 0;
  Kind kind = Kind::Ping;
};

static_assert(sizeof(Head) == 8);

class Pair {
 public:
  Pair(pm_context* pm, std::uint32_t other, std::uint32_t round)
      : pm_(pm), other_(other), round_(round) {}

  std::optional<PairFigures> measure();
  void answer();

 private:
  bool send(Kind kind, std::size_t bytes, TimePoint until);
  std::optional<Kind> receive(TimePoint until);
  bool receive(Kind kind, TimePoint until);
  std::optional<Duration> ping(TimePoint until);
  double stream();
  void wait(TimePoint until) const;
  void settle();

  pm_context* pm_;
  std::uint32_t other_;
  std::uint32_t round_;
};

void Pair::wait(TimePoint until) const {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - monotonic_now());
  pm_wait(pm_, std::max<std::int64_t>(left.count(), 0));
}

bool Pair::send(Kind kind, std::size_t bytes, TimePoint until) {
  void* buffer = nullptr;
  int result = 0;
  while ((result = pm_get_send_buffer(pm_, other_, &buffer, bytes)) == PM_ENOBUFS) {
    if (monotonic_now() > until) return false;
    pm_progress(pm_);
  }
  if (result != PM_SUCCESS) return false;
  const Head head{round_, kind};
  std::memcpy(buffer, &head, sizeof head);
  while ((result = pm_send(pm_)) == PM_ENOBUFS) {
    if (monotonic_now() > until) {
      pm_cancel(pm_);
      return false;
    }
    pm_progress(pm_);
  }
  return result == PM_SUCCESS;
}

// Returns the other rank's next message of this round; nullopt if that rank has ended or the time
// is over.
std::optional<Kind> Pair::receive(TimePoint until) {
  for (;;) {
    pm_message message;
    const int result = pm_receive(pm_, &message);
    if (result == PM_EPEER && message.source == other_) return std::nullopt;
    if (result == PM_SUCCESS) {
      Head head;
      const bool is_whole = message.length >= sizeof head && message.data != nullptr;
      if (is_whole) std::memcpy(&head, message.data, sizeof head);
      const bool is_ours = is_whole && message.source == other_ && head.round == round_;
      pm_release_receive_buffer(pm_, &message);
      if (is_ours) return head.kind;
      continue;
    }
    if (monotonic_now() > until) return std::nullopt;
    if (result == PM_EAGAIN) wait(until);
  }
}

bool Pair::receive(Kind kind, TimePoint until) {
  for (;;) {
    const auto got = receive(until);
    if (!got) return false;
    if (*got == kind) return true;
  }
}

std::optional<Duration> Pair::ping(TimePoint until) {
  const TimePoint start = monotonic_now();
  if (!send(Kind::Ping, sizeof(Head), until) || !receive(Kind::Pong, until)) return std::nullopt;
  return monotonic_now() - start;
}

double Pair::stream() {
  const TimePoint start = monotonic_now();
  const TimePoint until = start + kStream;
  const std::size_t part = std::max<std::size_t>(pm_mtu(pm_, other_), sizeof(Head));
  std::size_t sent = 0;
  while (sent < kStreamBytes) {
    const bool is_last = sent + part >= kStreamBytes;
    if (!send(is_last ? Kind::Last : Kind::Part, part, until)) return 0;
    sent += part;
  }
  if (!receive(Kind::Got, until)) return 0;
  return static_cast<double>(sent) / std::chrono::duration<double>(monotonic_now() - start).count();
}

std::optional<PairFigures> Pair::measure() {
  const auto first = ping(monotonic_now() + kFirstAnswer);
  if (!first) return std::nullopt;
  std::vector<Duration> trips{*first};
  const TimePoint until = monotonic_now() + kMostPings;
  while (trips.size() < kPings && monotonic_now() < until) {
    const auto trip = ping(until);
    if (!trip) break;
    trips.push_back(*trip);
  }
  const auto middle = trips.begin() + static_cast<std::ptrdiff_t>(trips.size() / 2);
  std::nth_element(trips.begin(), middle, trips.end());
  return PairFigures{*middle, stream()};
}

void Pair::answer() {
  TimePoint until = monotonic_now() + kFirstAnswer;
  for (bool is_first = true;; is_first = false) {
    const auto kind = receive(until);
    if (!kind) return;
    if (is_first) until = monotonic_now() + kMostPings + kStream;
    if (*kind == Kind::Ping && !send(Kind::Pong, sizeof(Head), until)) return;
    if (*kind != Kind::Last) continue;
    send(Kind::Got, sizeof(Head), until);
    return settle();
  }
}

// Waits until the last answer is acknowledged, so that it is not lost when this rank stops sending.
void Pair::settle() {
  const TimePoint until = monotonic_now() + kLastAcknowledgement;
  while (pm_quiet(pm_) == 0 && monotonic_now() < until) pm_progress(pm_);
}

}  // namespace

std::optional<PairFigures> meet(pm_context* pm, std::uint32_t other, std::uint32_t round) {
  Pair pair(pm, other, round);
  if (pm_self(pm) < other) return pair.measure();
  pair.answer();
  return std::nullopt;
}

}  // namespace score::probe
