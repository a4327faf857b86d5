// This engine implements PM's go-back-N with STOP/GO flow control as a pure state machine.
//
// One SendSide and one ReceiveSide exist per ordered pair of endpoints. Both are trivially copyable
// and hold no pointers: they lie in the context segment and are saved by copying. The engine has no
// clock, no socket and no memory of its own; events go in, decisions come out:
//
//   on_app_*     the application queued a frame, sent one or released a buffer
//   on_packet_*  a verified frame arrived
//   on_timer     the deadline passed
//   on_resume    the job continues after a stop
//
// The published protocol stalls or loses data in several ways, so the engine differs from it. Each
// repair has a name (G1 ... G24) and each rule a number; see docs/reference/pm.md. Six repairs can
// be switched off through the Rules so that the model checker can show that each is needed.
//
// Numbers are serial (RFC 1982): windows are at most half of the number space. Times are
// microseconds on the job's own clock, which stands still while the job is stopped; they wrap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace score::pm {

using Microseconds = std::uint32_t;

// These rules are used in production. The model checker derives from them and switches one repair
// off.
struct Rules {
  using Seq = std::uint32_t;
  static constexpr bool kG1 = true;   // a timeout resends the oldest message, not the one after it
  static constexpr bool kG4 = true;   // STOP(k) frees below k, because k itself was refused
  static constexpr bool kG7 = true;   // duplicates are acknowledged
  static constexpr bool kG8 = true;   // `sent` never stays below `acked`
  static constexpr bool kG9 = true;   // a stopped sender probes
  static constexpr bool kG10 = true;  // not only GO but any progress lifts STOP
};

struct EngineLimits {
  std::uint16_t window = 1024;       // W: most frames in flight; at most half the number space
  Microseconds rto_min = 1000;       // shortest timeout; RFC 6298 adapted to a LAN
  Microseconds rto_max = 1'000'000;  // longest timeout, with or without back-off
  Microseconds rto_kept = 32'000;    // longest backed-off timeout kept after progress; up to
                                     // here each timeout doubles it, beyond it every second one
  Microseconds rto_initial = 5000;   // before the first round trip is measured
};

// SendSide is the state of the sender of one pair. These hold always: acked <= sent <= max_sent <=
// acked + W, and max_sent <= queued.
template <class Seq>
struct SendSide {
  Seq acked = 0;     // the receiver is known to have stored everything up to it
  Seq sent = 0;      // number sent last; it moves back to resend
  Seq max_sent = 0;  // highest number ever sent
  Seq queued = 0;    // highest number that the application has handed over
  Seq timed = 0;     // frame whose round trip is being measured, if kTiming is set
  Microseconds timed_at = 0;
  Microseconds srtt = 0;  // smoothed round trip; 0 = not measured yet
  Microseconds deadline = 0;
  std::uint16_t window = 0;      // frames that the path is assumed to carry, 1 .. W
  std::uint16_t flow_count = 0;  // count of the newest STOP or GO that was obeyed
  std::uint8_t flags = 0;
  std::uint8_t backoff = 0;  // timeouts since a round trip was measured; saturates
  std::uint8_t silent = 0;   // timeouts since the last frame of the receiver; saturates

  static constexpr std::uint8_t kStopped = 1;     // the receiver has no room
  static constexpr std::uint8_t kRecovering = 2;  // a LOSE(acked) has been obeyed
  static constexpr std::uint8_t kArmed = 4;       // `deadline` is set
  static constexpr std::uint8_t kTiming = 8;      // `timed` is set
  static constexpr std::uint8_t kCautious = 16;   // after many losses the window grows slowly
  static constexpr std::uint8_t kResent = 32;     // no progress since a timeout

  bool operator==(const SendSide&) const = default;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }

  void set(std::uint8_t flag, bool on) {
    flags = static_cast<std::uint8_t>(on ? flags | flag : flags & ~flag);
  }
};

// ReceiveSide is the state of the receiver of one pair.
template <class Seq>
struct ReceiveSide {
  Seq recv = 0;                  // number stored last
  std::uint16_t flow_count = 0;  // count of the newest STOP or GO sent
  std::uint8_t flags = 0;

  static constexpr std::uint8_t kRefused = 1;   // STOP was sent, but no GO since then
  static constexpr std::uint8_t kGap = 2;       // a LOSE was sent for the present gap
  static constexpr std::uint8_t kPromised = 4;  // one free buffer is reserved for this sender
  static constexpr std::uint8_t kAckOwed = 8;   // stored or duplicate frames not yet acknowledged
  static constexpr std::uint8_t kDenied = 16;   // the next number was denied; only Void replaces it

  bool operator==(const ReceiveSide&) const = default;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }

  void set(std::uint8_t flag, bool on) {
    flags = static_cast<std::uint8_t>(on ? flags | flag : flags & ~flag);
  }
};

enum class ControlKind : std::uint8_t {
  None,  // no frame to send
  Ack,   // everything up to `number` is stored
  Lose,  // `number` is stored, the next one is missing: go back
  Stop,  // `number` was refused for lack of a buffer; everything below it is stored
  Go,    // continue to send from `number`; `credit` buffers were free
};

template <class Seq>
struct Control {
  ControlKind kind = ControlKind::None;
  Seq number = 0;
  std::uint16_t count = 0;   // puts STOP and GO in order
  std::uint16_t credit = 0;  // GO only; 0 = unlimited
};

enum class TimerAction {
  None,
  GoBack,  // `sent` moved back: send as many frames as allowed
  Probe,   // send acked + 1 once and stay stopped
};

enum class Arrival {
  Store,      // next in sequence: the caller stores it; it is counted already
  Refused,    // next in sequence, but no buffer is free
  Early,      // numbers are missing before it
  Duplicate,  // was stored before
  Strange,    // outside every window: drop and count
};

template <class Seq>
struct ArrivalResult {
  Arrival arrival = Arrival::Strange;
  Control<Seq> reply;  // to be sent at once; an owed ACK is in ReceiveSide::kAckOwed
};

// SharedRoom counts the receive buffers of a channel, which all senders share (G17, G18). When a
// buffer becomes free, a refused sender gets a GO and the buffer stays reserved for it, because it
// has at least the refused frame to send. So a busy sender cannot starve a refused one.
struct SharedRoom {
  std::uint16_t capacity = 0;  // buffers
  std::uint16_t used = 0;      // buffers with messages not yet released
  std::uint16_t promised = 0;  // free, but reserved for senders that got a GO

  bool operator==(const SharedRoom&) const = default;

  std::uint16_t unpromised() const {
    return static_cast<std::uint16_t>(capacity - used - promised);
  }

  template <class Seq>
  bool has_room_for(const ReceiveSide<Seq>& side) const {
    return side.has(ReceiveSide<Seq>::kPromised) || unpromised() > 0;
  }

  template <class Seq>
  void take(ReceiveSide<Seq>& side) {
    ++used;
    drop_promise(side);
  }

  void release() { --used; }

  template <class Seq>
  void promise(ReceiveSide<Seq>& side) {
    if (side.has(ReceiveSide<Seq>::kPromised)) return;
    side.set(ReceiveSide<Seq>::kPromised, true);
    ++promised;
  }

  // The channel calls this, too, when it declares the sender dead.
  template <class Seq>
  void drop_promise(ReceiveSide<Seq>& side) {
    if (!side.has(ReceiveSide<Seq>::kPromised)) return;
    side.set(ReceiveSide<Seq>::kPromised, false);
    --promised;
  }
};

// Returns true if `now` is at or after `deadline` in serial order.
constexpr bool time_reached(Microseconds now, Microseconds deadline) {
  return static_cast<std::int32_t>(now - deadline) >= 0;
}

template <class R = Rules>
class Engine {
 public:
  using Seq = typename R::Seq;
  using Send = SendSide<Seq>;
  using Receive = ReceiveSide<Seq>;
  static_assert(std::is_unsigned_v<Seq> && std::is_trivially_copyable_v<Send>);

  explicit constexpr Engine(EngineLimits limits) : limits_(limits) {}

  constexpr const EngineLimits& limits() const { return limits_; }

  // Both sides of a pair must start from the same number (0 in production).
  Send fresh_sender(Seq start = 0) const {
    Send s;
    s.acked = s.sent = s.max_sent = s.queued = start;
    s.window = limits_.window;
    return s;
  }

  Receive fresh_receiver(Seq start = 0) const {
    Receive r;
    r.recv = start;
    return r;
  }

  // --- sender -------------------------------------------------------------------------------

  // Adds `frames` numbers that may be sent. The caller keeps queued - acked below half the numbers.
  static void on_app_queue(Send& s, Seq frames) { s.queued = plus(s.queued, frames); }

  // Implements rule 1 (G6, G13).
  bool may_send(const Send& s) const {
    return !s.has(Send::kStopped) && s.sent != s.queued && minus(s.sent, s.acked) < window_of(s);
  }

  // Returns how many frames may be sent now.
  Seq sendable(const Send& s) const {
    if (!may_send(s)) return 0;
    const Seq room = minus(window_of(s), minus(s.sent, s.acked));
    const Seq waiting = minus(s.queued, s.sent);
    return room < waiting ? room : waiting;
  }

  // Takes the next number; requires may_send(). The caller transmits the frame of that number.
  Seq on_app_send(Send& s, Microseconds now) const {
    const bool is_new = s.sent == s.max_sent;
    s.sent = plus(s.sent, 1);
    if (is_new) {
      s.max_sent = s.sent;
      if (!s.has(Send::kTiming)) start_timing(s, now);
    }
    if (!s.has(Send::kArmed)) arm(s, now);
    return s.sent;
  }

  // Handles a control frame, or the ACK that rides on a data frame. Returns true if it was obeyed.
  // The caller then frees what it keeps of numbers up to `acked`.
  bool on_packet_control(Send& s, const Control<Seq>& c, Microseconds now) const {
    switch (c.kind) {
      case ControlKind::Ack:
        return on_ack(s, c.number, now);
      case ControlKind::Lose:
        return on_lose(s, c.number, now);
      case ControlKind::Stop:
        return on_stop(s, c, now);
      case ControlKind::Go:
        return on_go(s, c, now);
      case ControlKind::None:
        break;
    }
    return false;
  }

  // Implements rule 6. Does nothing before the deadline.
  TimerAction on_timer(Send& s, Microseconds now) const {
    if (!s.has(Send::kArmed) || !time_reached(now, s.deadline)) return TimerAction::None;
    if (s.acked == s.max_sent) {
      s.set(Send::kArmed, false);
      return TimerAction::None;
    }
    count_up(s.backoff);
    count_up(s.silent);
    // Karn's algorithm forbids measuring a frame that was sent twice. The first measurement may be
    // one: where a round trip takes longer than rto_initial, there would otherwise be none.
    if (s.srtt != 0) s.set(Send::kTiming, false);
    s.set(Send::kRecovering, false);
    s.set(Send::kResent, true);
    arm(s, now);
    if (s.has(Send::kStopped)) return R::kG9 ? TimerAction::Probe : TimerAction::None;
    s.sent = R::kG1 ? s.acked : plus(s.acked, 1);
    s.window = static_cast<std::uint16_t>(window_of(s) > 1 ? window_of(s) / 2 : 1);  // G21
    return TimerAction::GoBack;
  }

  // Implements rule 9 (G22) after a stop of the job. `jitter` spreads the timers of its peers.
  static void on_resume(Send& s, Microseconds now, Microseconds jitter) {
    if (!s.has(Send::kArmed)) return;
    s.deadline = (time_reached(now, s.deadline) ? now : s.deadline) + jitter;
    s.set(Send::kTiming, false);
    s.set(Send::kResent, false);
  }

  // Limits the deadline to one timeout from now: after a restore the clock may be that of a
  // different host.
  void on_restore(Send& s, Microseconds now) const {
    const bool is_too_far = static_cast<std::int32_t>(s.deadline - now - timeout_of(s)) > 0;
    if (!s.has(Send::kArmed) || !is_too_far) return;
    arm(s, now);
    s.set(Send::kTiming, false);
    s.set(Send::kResent, false);
  }

  // Reduces the window by half (G21): the receiver misses many frames at once, so the path does not
  // carry the load.
  void on_heavy_loss(Send& s) const {
    s.window =
        static_cast<std::uint16_t>(window_of(s) > kLeastWindow ? window_of(s) / 2 : window_of(s));
    s.set(Send::kCautious, true);
  }

  // Any verified frame of the receiver shows that it lives.
  static void on_sign_of_life(Send& s) { s.silent = 0; }

  // --- receiver -----------------------------------------------------------------------------

  // Implements rule 7. `room` is true if a buffer is free for this sender or the frame needs none.
  ArrivalResult<Seq> on_packet_data(Receive& r, Seq seq, bool room) const {
    const Seq ahead = minus(seq, plus(r.recv, 1));
    if (ahead == 0) return room ? store(r) : refuse(r);
    if (ahead < limits_.window) return early(r);
    if (minus(r.recv, seq) < limits_.window) {
      if (R::kG7) r.set(Receive::kAckOwed, true);
      return {Arrival::Duplicate, {}};
    }
    return {Arrival::Strange, {}};
  }

  // Returns the owed ACK, which the caller sends now, alone or on a data frame.
  static Control<Seq> on_app_ack(Receive& r) {
    r.set(Receive::kAckOwed, false);
    return {ControlKind::Ack, r.recv, 0, 0};
  }

  // Implements rule 8 for a refused sender. The caller has reserved a buffer for it.
  static Control<Seq> on_app_room(Receive& r, std::uint16_t credit) {
    r.set(Receive::kRefused, false);
    ++r.flow_count;
    return {ControlKind::Go, plus(r.recv, 1), r.flow_count, credit};
  }

  // --- the common cases ------------------------------------------------------------------------
  // The fast path uses these functions for the cases in which few of the rules apply.

  // Returns true for an ACK that reports nothing new. Also returns true if it covers all queued
  // frames and there is no timeout, loss or full receiver to account for.
  static bool is_plain_ack(const Send& s, Seq k) {
    constexpr unsigned kPlain = Send::kArmed | Send::kTiming;
    return k == s.acked || (k == s.sent && k == s.queued && s.srtt != 0 && s.backoff == 0 &&
                            (s.flags & ~kPlain) == 0);
  }

  // Returns true for the next frame in sequence if no STOP, LOSE or reserved buffer is pending.
  static bool is_plain_data(const Receive& r, Seq seq) {
    return seq == plus(r.recv, 1) && (r.flags & ~unsigned{Receive::kAckOwed}) == 0;
  }

  // Does the same as on_packet_control() for a plain ACK that reports progress.
  void on_plain_ack(Send& s, Microseconds now) const {
    if (s.has(Send::kTiming)) measure(s, now);
    const unsigned grown = s.window + unsigned{minus(s.sent, s.acked)};
    s.window = static_cast<std::uint16_t>(grown < limits_.window ? grown : limits_.window);
    s.acked = s.sent;
    s.flags = 0;
    s.silent = 0;
  }

  // Does the same as on_packet_data() for plain data with room.
  static void on_plain_data(Receive& r) { store(r); }

  // Returns true if one more frame could be sent, alone and at once.
  bool is_plain_send(const Send& s) const {
    return s.sent == s.queued && !s.has(Send::kStopped) && minus(s.sent, s.acked) < window_of(s);
  }

  // --- shared -------------------------------------------------------------------------------

  static constexpr Seq plus(Seq a, Seq b) { return static_cast<Seq>(a + b); }

  static constexpr Seq minus(Seq a, Seq b) { return static_cast<Seq>(a - b); }

  // Returns the microseconds until the next timeout of a frame sent now.
  Microseconds timeout_of(const Send& s) const {
    const std::uint64_t base = usual_timeout_of(s);
    return s.backoff == 0 ? static_cast<Microseconds>(base) : backed_off(base, s.backoff);
  }

 private:
  static constexpr Seq kLeastWindow = 4;  // after losses; timeouts reduce it down to 1

  // Returns the timeout without back-off.
  Microseconds usual_timeout_of(const Send& s) const {
    const std::uint64_t base = s.srtt == 0 ? limits_.rto_initial : std::uint64_t{s.srtt} * 4;
    return static_cast<Microseconds>(
        std::clamp<std::uint64_t>(base, limits_.rto_min, limits_.rto_max));
  }

  // The engine assumes no round trip longer than rto_kept; a frame that times out beyond that was
  // lost. If more than half of the frames are lost, a timeout that doubles each time has no mean
  // value, so it doubles only every second time.
  [[gnu::noinline]] Microseconds backed_off(std::uint64_t timeout, unsigned times) const {
    for (; times > 0 && timeout < limits_.rto_kept; --times) timeout *= 2;
    timeout <<= std::min(times / 2, 20u);
    return static_cast<Microseconds>(std::min<std::uint64_t>(timeout, limits_.rto_max));
  }

  static void count_up(std::uint8_t& count) {
    if (count < std::numeric_limits<std::uint8_t>::max()) ++count;
  }

  Seq window_of(const Send& s) const {
    return static_cast<Seq>(s.window < limits_.window ? s.window : limits_.window);
  }

  void arm(Send& s, Microseconds now) const {
    s.deadline = now + timeout_of(s);
    s.set(Send::kArmed, true);
  }

  static void start_timing(Send& s, Microseconds now) {
    s.timed = s.sent;
    s.timed_at = now;
    s.set(Send::kTiming, true);
  }

  // Frees up to k. Returns true if that was progress.
  bool advance(Send& s, Seq k, Microseconds now) const {
    const Seq freed = minus(k, s.acked);
    if (freed == 0) return false;
    if (s.has(Send::kResent)) judge_resend(s, now);
    const bool is_measured = s.has(Send::kTiming) && minus(s.timed, s.acked) <= freed;
    if (is_measured) measure(s, now);
    s.acked = k;
    s.set(Send::kRecovering, false);
    const unsigned step = s.has(Send::kCautious) ? 1u + unsigned{freed} / 8 : unsigned{freed};
    const unsigned grown = s.window + step;
    s.window = static_cast<std::uint16_t>(grown < limits_.window ? grown : limits_.window);
    if (grown >= limits_.window) s.set(Send::kCautious, false);
    forget_backoff(s, is_measured);
    s.silent = 0;
    if (s.acked == s.max_sent) {
      s.set(Send::kArmed, false);
    } else {
      arm(s, now);
    }
    return true;
  }

  // Runs at the first progress after a timeout. An answer within one usual timeout after the resend
  // belongs to the resend: the frame was lost, and the round trip has not become longer. A later
  // answer may belong to the first transmission.
  void judge_resend(Send& s, Microseconds now) const {
    s.set(Send::kResent, false);
    const Microseconds since = now - (s.deadline - timeout_of(s));
    if (since <= usual_timeout_of(s)) s.backoff = 0;
  }

  // Implements the other half of Karn's algorithm: the longer timeout stays until a frame that was
  // sent once has been measured. Otherwise round trips that have become longer would always time
  // out before they could be measured. Where losses cause the timeouts, a long timeout only wastes
  // time. So it is kept at most at rto_kept, and not at all if the receiver has reported many
  // losses.
  void forget_backoff(Send& s, bool is_measured) const {
    if (is_measured || s.has(Send::kCautious)) s.backoff = 0;
    while (s.backoff > 0 && timeout_of(s) > limits_.rto_kept) --s.backoff;
  }

  void measure(Send& s, Microseconds now) const {
    const Microseconds took = now - s.timed_at;
    // The first sample may include the time before the peer had started.
    const Microseconds longest = s.srtt == 0 ? 4 * limits_.rto_initial : limits_.rto_max;
    const Microseconds sample = took < longest ? took : longest;
    s.srtt = s.srtt == 0 ? sample + 1 : (s.srtt * 7 + sample) / 8 + 1;
    if (s.backoff > 0 && !s.has(Send::kCautious))
      s.srtt = std::max(s.srtt, std::min(sample, limits_.rto_kept / 4) + 1);
    s.set(Send::kTiming, false);
  }

  // Moves `sent` back to k, or forward if k overtook it (G8).
  static void resend_from(Send& s, Seq k) {
    if (s.sent != k) s.set(Send::kTiming, false);
    s.sent = k;
  }

  // Returns k - acked if acked < k <= max_sent, else 0. A frame that was never sent cannot be
  // acknowledged (G15).
  static Seq progress_of(const Send& s, Seq k) {
    const Seq ahead = minus(k, s.acked);
    return ahead <= minus(s.max_sent, s.acked) ? ahead : Seq{0};
  }

  // Implements rule 2.
  bool on_ack(Send& s, Seq k, Microseconds now) const {
    if (progress_of(s, k) == 0) return false;
    const bool overtaken = minus(s.sent, s.acked) < minus(k, s.acked);
    advance(s, k, now);
    if (s.has(Send::kStopped) && R::kG10) {
      s.set(Send::kStopped, false);
      resend_from(s, k);
    }
    if (overtaken && R::kG8) s.sent = k;
    return true;
  }

  // Implements rule 3 (G2, G3, G14).
  bool on_lose(Send& s, Seq k, Microseconds now) const {
    const Seq ahead = minus(k, s.acked);
    if (ahead > minus(s.max_sent, s.acked)) return false;
    if (ahead == 0 && s.has(Send::kRecovering)) return false;
    advance(s, k, now);
    resend_from(s, k);
    s.set(Send::kRecovering, true);
    return true;
  }

  static bool is_newer(const Send& s, std::uint16_t count) {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>(count - s.flow_count)) > 0;
  }

  // Implements rule 4 (G4, G12).
  bool on_stop(Send& s, const Control<Seq>& c, Microseconds now) const {
    if (progress_of(s, c.number) == 0 || !is_newer(s, c.count)) return false;
    s.flow_count = c.count;
    const Seq stored = R::kG4 ? minus(c.number, 1) : c.number;
    advance(s, stored, now);
    resend_from(s, stored);
    s.set(Send::kStopped, true);
    arm(s, now);
    return true;
  }

  // Implements rule 5.
  bool on_go(Send& s, const Control<Seq>& c, Microseconds now) const {
    if (progress_of(s, c.number) == 0 || !is_newer(s, c.count)) return false;
    s.flow_count = c.count;
    const Seq stored = minus(c.number, 1);
    advance(s, stored, now);
    resend_from(s, stored);
    s.set(Send::kStopped, false);
    s.backoff = 0;  // this counted probes
    if (c.credit != 0 && c.credit < window_of(s)) s.window = c.credit;
    return true;
  }

  static ArrivalResult<Seq> store(Receive& r) {
    r.recv = plus(r.recv, 1);
    r.set(Receive::kRefused, false);
    r.set(Receive::kGap, false);
    r.set(Receive::kDenied, false);
    r.set(Receive::kAckOwed, true);
    return {Arrival::Store, {}};
  }

  // Only the first refusal increments the count; a repeated one sends the same STOP, which answers
  // a probe.
  static ArrivalResult<Seq> refuse(Receive& r) {
    if (!r.has(Receive::kRefused)) {
      r.set(Receive::kRefused, true);
      ++r.flow_count;
    }
    return {Arrival::Refused, {ControlKind::Stop, plus(r.recv, 1), r.flow_count, 0}};
  }

  // A frame behind a refused one is not lost, only refused as well, so no LOSE is sent for it.
  static ArrivalResult<Seq> early(Receive& r) {
    if (r.has(Receive::kGap) || r.has(Receive::kRefused)) return {Arrival::Early, {}};
    r.set(Receive::kGap, true);
    return {Arrival::Early, {ControlKind::Lose, r.recv, 0, 0}};
  }

  EngineLimits limits_;
};

}  // namespace score::pm
