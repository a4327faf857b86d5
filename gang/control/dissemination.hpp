#pragma once
// One node's part in the meetings of a job's nodes: the dissemination barrier (Hensgen, Finkel and
// Manber, 1988). Among n members it takes ceil(log2 n) rounds; in round r a member sends a word to
// the member 2^r places after it and waits for the word of the member 2^r places before it. A
// member that has had the words of all rounds knows that every member has come.
//
// Words may be lost, repeated, late, and arrive in any order. A member that waits asks the one it
// waits for, which repeats its word if it has sent it before; so a member that is done and silent
// is reached too, until it begins the second meeting after this one.
//
// Thread: any one. No allocation, no exceptions, O(log n) per call: for a real-time thread.

#include "base/model/model.hpp"
#include "base/time.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace score::gang {

using base::Duration;
using base::TimePoint;

class Dissemination {
 public:
  static constexpr std::uint32_t kMaxRounds = 14;  // for limits::kMaxNodes members
  // The pause before a question, doubled after each kAsksPerPause of them, up to kSlowestAsk.
  static constexpr Duration kFirstAsk = std::chrono::microseconds{200};
  static constexpr std::uint32_t kAsksPerPause = 8;
  static constexpr Duration kSlowestAsk = std::chrono::microseconds{1'600};
  // Then it waits without asking: the shell has given the meeting up before.
  static constexpr std::uint32_t kMaxAsks = 200;

  // What a datagram carries, beside the names of attempt and meeting.
  struct Word {
    TimePoint boundary{};  // cluster time; equal within base::kSameBoundary
    std::uint32_t round = 0;
    bool asks = false;  // "I wait for your word of this round" instead of "I am in this round"

    friend bool operator==(const Word&, const Word&) = default;
  };

  struct Send {
    std::uint32_t to = 0;  // member
    Word word;
  };

  // What one call wants sent, in order.
  class Sends {
   public:
    void add(const Send& send) { sends_[count_++] = send; }

    [[nodiscard]] std::span<const Send> all() const { return {sends_.data(), count_}; }

   private:
    std::array<Send, kMaxRounds + 2> sends_;
    std::size_t count_ = 0;
  };

  // self < count <= limits::kMaxNodes; both are members' numbers, the same on all nodes of the job.
  Dissemination(std::uint32_t self, std::uint32_t count);

  // This member has come. A meeting of another boundary that it still waited for is given up. Again
  // for the same boundary, or for one before it: nothing.
  Sends come(TimePoint boundary, TimePoint now) noexcept;
  // As come(), for a member that need not know whether all have come: it says nothing until it
  // hears of a member that waits.
  Sends come_quietly(TimePoint boundary, TimePoint now) noexcept;
  // A word of member `from`, as received: anything that does not fit is ignored, and counted.
  Sends hear(std::uint32_t from, const Word& word, TimePoint now) noexcept;
  // Asks if it is time to.
  Sends advance(TimePoint now) noexcept;
  // When advance() has something to do; nullopt: not before the next come() or hear().
  [[nodiscard]] std::optional<TimePoint> next_deadline() const noexcept;

  // True: every member has come to this boundary. It is the last one or the one before.
  [[nodiscard]] bool has_met(TimePoint boundary) const noexcept;

  // No task of the job runs here any more, but the other nodes still wait for this member: from now
  // on it comes to each meeting as soon as it hears of it.
  void set_attends_unasked() noexcept { comes_at_once_ = true; }

  // It has come quietly, and no one has asked yet.
  [[nodiscard]] bool is_quiet() const noexcept { return is_quiet_; }

  // Words that did not fit: late, from the wrong member, of no round.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }

 private:
  struct Heard {  // words had, by round: bit r
    TimePoint boundary{};
    std::uint32_t rounds = 0;
  };

  [[nodiscard]] std::uint32_t after(std::uint32_t round) const;   // who gets this round's word
  [[nodiscard]] std::uint32_t before(std::uint32_t round) const;  // whose word is waited for

  [[nodiscard]] bool is_waiting() const { return has_come_ && !is_quiet_ && round_ < rounds_; }

  bool begin(TimePoint boundary);
  void speak(TimePoint now, Sends& sends);
  void answer(std::uint32_t from, const Word& word, Sends& sends);
  void take(const Word& word, TimePoint now, Sends& sends);
  void proceed(TimePoint now, Sends& sends);
  void restart_asking(TimePoint now);

  std::uint32_t self_, count_, rounds_;
  bool has_come_ = false;  // ever
  bool comes_at_once_ = false;
  bool is_quiet_ = false;                // of current_
  Heard current_;                        // the boundary it has come to last
  Heard ahead_;                          // the latest one that others have come to before it
  std::uint32_t round_ = 0;              // of current_: its words up to this round are sent
  std::optional<TimePoint> met_before_;  // the last meeting before current_ that was complete
  std::uint32_t asks_ = 0;
  TimePoint asks_at_{};
  std::uint64_t ignored_ = 0;
};

}  // namespace score::gang
