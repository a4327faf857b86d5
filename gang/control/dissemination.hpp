#pragma once
// Dissemination carries out one node's part in the meetings of a job's nodes, by the dissemination
// barrier (Hensgen, Finkel and Manber, 1988). Among n members it takes ceil(log2 n) rounds. In
// round r a member sends a word (one datagram) to the member 2^r places after it and waits for the
// word of the member 2^r places before it. A member that has the words of all rounds knows that
// every member has come.
//
// Words may be lost, repeated, late, and arrive in any order. A waiting member asks the member
// whose word it lacks, which repeats the word if it has sent it before. So a member that is done
// and silent still answers, until it begins the second meeting after this one.
//
// Thread: any one. A call does not allocate or throw and takes O(log n), so a real-time thread may
// use it.

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
  static constexpr std::uint32_t kMaxRounds = 14;  // enough for limits::kMaxNodes members
  // The pause before a question doubles after each kAsksPerPause questions, up to kSlowestAsk.
  static constexpr Duration kFirstAsk = std::chrono::microseconds{200};
  static constexpr std::uint32_t kAsksPerPause = 8;
  static constexpr Duration kSlowestAsk = std::chrono::microseconds{1'600};
  // After this many questions it waits without asking, because the shell has given the meeting up
  // before.
  static constexpr std::uint32_t kMaxAsks = 200;

  // A word is the content of a datagram without the names of attempt and meeting.
  struct Word {
    TimePoint boundary{};  // in cluster time; equal within base::kSameBoundary
    std::uint32_t round = 0;
    bool asks = false;  // "I wait for your word of this round" instead of "I am in this round"

    friend bool operator==(const Word&, const Word&) = default;
  };

  struct Send {
    std::uint32_t to = 0;  // number of the member
    Word word;
  };

  // Sends holds the words that one call wants to send, in order.
  class Sends {
   public:
    void add(const Send& send) { sends_[count_++] = send; }

    [[nodiscard]] std::span<const Send> all() const { return {sends_.data(), count_}; }

   private:
    std::array<Send, kMaxRounds + 2> sends_;
    std::size_t count_ = 0;
  };

  // Requires self < count <= limits::kMaxNodes. Both use member numbers, which are the same on all
  // nodes of the job.
  Dissemination(std::uint32_t self, std::uint32_t count);

  // Records that this member has come to `boundary`. It gives up an earlier meeting that it still
  // waits for. A call for the same or an earlier boundary does nothing.
  Sends come(TimePoint boundary, TimePoint now) noexcept;
  // Does the same as come() for a member that need not know whether all have come. It sends nothing
  // until it hears of a waiting member.
  Sends come_quietly(TimePoint boundary, TimePoint now) noexcept;
  // Takes a word of member `from` as received. A word that does not fit is ignored and counted.
  Sends hear(std::uint32_t from, const Word& word, TimePoint now) noexcept;
  // Sends a question if one is due.
  Sends advance(TimePoint now) noexcept;
  // Returns the time of the next useful advance(); nullopt: none before the next come() or hear().
  [[nodiscard]] std::optional<TimePoint> next_deadline() const noexcept;

  // Returns true if every member has come to this boundary, which is the current one or the one
  // before.
  [[nodiscard]] bool has_met(TimePoint boundary) const noexcept;

  // Makes this member come to each meeting as soon as it hears of it. The caller uses it when no
  // task of the job runs here any more but the other nodes still wait for this member.
  void set_attends_unasked() noexcept { comes_at_once_ = true; }

  // Returns true if it has come quietly and no member has asked yet.
  [[nodiscard]] bool is_quiet() const noexcept { return is_quiet_; }

  // Returns the number of words that did not fit: late, from the wrong member, or of an invalid
  // round.
  [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }

 private:
  struct Heard {  // words received; bit r stands for round r
    TimePoint boundary{};
    std::uint32_t rounds = 0;
  };

  [[nodiscard]] std::uint32_t after(std::uint32_t round) const;   // gets this round's word
  [[nodiscard]] std::uint32_t before(std::uint32_t round) const;  // sends the awaited word

  [[nodiscard]] bool is_waiting() const { return has_come_ && !is_quiet_ && round_ < rounds_; }

  bool begin(TimePoint boundary);
  void speak(TimePoint now, Sends& sends);
  void answer(std::uint32_t from, const Word& word, Sends& sends);
  void take(const Word& word, TimePoint now, Sends& sends);
  void proceed(TimePoint now, Sends& sends);
  void restart_asking(TimePoint now);

  std::uint32_t self_, count_, rounds_;
  bool has_come_ = false;  // to any boundary
  bool comes_at_once_ = false;
  bool is_quiet_ = false;    // concerns current_
  Heard current_;            // the boundary that it has come to last
  Heard ahead_;              // the latest boundary that other members have come to before it
  std::uint32_t round_ = 0;  // in current_: its words up to this round are sent
  std::optional<TimePoint> met_before_;  // the last complete meeting before current_
  std::uint32_t asks_ = 0;
  TimePoint asks_at_{};
  std::uint64_t ignored_ = 0;
};

}  // namespace score::gang
