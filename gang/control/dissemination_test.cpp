#include "gang/control/dissemination.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <vector>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Send = Dissemination::Send;
using Word = Dissemination::Word;

constexpr TimePoint kBoundary{1h};
constexpr TimePoint kNext = kBoundary + 100ms;

std::vector<Send> list(const Dissemination::Sends& sends) {
  return {sends.all().begin(), sends.all().end()};
}

// Gang simulates a job's nodes with a bad network. All random choices come from the seed.
class Gang {
 public:
  struct Faults {
    unsigned loss_percent = 0, twice_percent = 0;
    Duration most_delay = 50us;
  };

  Gang(std::uint32_t count, Faults faults, unsigned seed) : faults_(faults), chance_(seed) {
    for (std::uint32_t m = 0; m < count; ++m) members_.emplace_back(m, count);
  }

  Dissemination& operator[](std::uint32_t m) { return members_[m]; }

  void come_at(std::uint32_t m, TimePoint at, TimePoint boundary) {
    ++coming_[boundary];
    at_time(at, [this, m, boundary] {
      ++come_[boundary];
      send(m, members_[m].come(boundary, now_));
    });
  }

  void run_until(TimePoint end) {
    while (!events_.empty() && events_.begin()->first <= end) {
      auto event = events_.extract(events_.begin());
      now_ = event.key();
      event.mapped()();
      check();
    }
    now_ = end;
  }

  [[nodiscard]] std::size_t met(TimePoint boundary) const {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(),
                      [&](const Dissemination& member) { return member.has_met(boundary); }));
  }

  std::size_t sent = 0;
  bool is_safe = true;  // no member has met before all had come

 private:
  void at_time(TimePoint at, std::function<void()> what) { events_.emplace(at, std::move(what)); }

  bool happens(unsigned percent) { return chance_() % 100 < percent; }

  void send(std::uint32_t from, const Dissemination::Sends& sends) {
    for (const Send& one : sends.all()) {
      ++sent;
      const int copies = (happens(faults_.loss_percent) ? 0 : 1) + happens(faults_.twice_percent);
      for (int copy = 0; copy < copies; ++copy) deliver(from, one);
    }
    const auto due = members_[from].next_deadline();
    if (due) at_time(*due, [this, from] { send_asks(from); });
  }

  void send_asks(std::uint32_t from) {
    const auto sends = members_[from].advance(now_);
    if (!sends.all().empty()) send(from, sends);
  }

  void deliver(std::uint32_t from, const Send& one) {
    const auto delay =
        1us + Duration{static_cast<Duration::rep>(
                  chance_() % static_cast<std::uint64_t>(faults_.most_delay.count()))};
    at_time(now_ + delay,
            [this, from, one] { send(one.to, members_[one.to].hear(from, one.word, now_)); });
  }

  void check() {
    for (const auto& [boundary, count] : coming_) {
      if (come_[boundary] < count && met(boundary) > 0) is_safe = false;
    }
  }

  Faults faults_;
  std::mt19937_64 chance_;
  TimePoint now_{};
  std::vector<Dissemination> members_;
  std::multimap<TimePoint, std::function<void()>> events_;
  std::map<TimePoint, std::size_t> coming_, come_;
};

TEST(Dissemination, SingleMemberHasMetAtOnce) {
  Dissemination alone(0, 1);
  EXPECT_TRUE(alone.come(kBoundary, kBoundary).all().empty());
  EXPECT_TRUE(alone.has_met(kBoundary));
  EXPECT_FALSE(alone.has_met(kNext));
  EXPECT_FALSE(alone.next_deadline());
}

TEST(Dissemination, SendsLogNWordsPerMember) {
  for (const auto& [count, rounds] : std::map<std::uint32_t, std::size_t>{
           {2, 1}, {3, 2}, {4, 2}, {5, 3}, {8, 3}, {9, 4}, {64, 6}}) {
    Gang gang(count, {}, 1);
    for (std::uint32_t m = 0; m < count; ++m) gang.come_at(m, kBoundary, kBoundary);
    gang.run_until(kBoundary + 1s);
    EXPECT_EQ(gang.met(kBoundary), count);
    EXPECT_EQ(gang.sent, count * rounds) << count;
  }
}

TEST(Dissemination, QuietMembersSpeakWhenOneMemberWaits) {
  for (const std::uint32_t count : {2U, 3U, 8U, 9U}) {
    Gang gang(count, {}, 1);
    for (std::uint32_t m = 1; m < count; ++m) {
      EXPECT_TRUE(gang[m].come_quietly(kBoundary, kBoundary).all().empty());
      EXPECT_FALSE(gang[m].next_deadline());
    }
    gang.run_until(kBoundary + 1s);
    EXPECT_EQ(gang.sent, 0U);
    gang.come_at(0, kBoundary + 1s, kBoundary);
    gang.run_until(kBoundary + 1s + 5ms);
    EXPECT_EQ(gang.met(kBoundary), count);
    EXPECT_TRUE(gang.is_safe);
  }
}

TEST(Dissemination, AwaitedQuietMemberSpeaksAtOnce) {
  Dissemination waits(0, 2), quiet(1, 2);
  const auto words = list(waits.come(kBoundary, kBoundary));
  EXPECT_TRUE(quiet.hear(0, words.at(0).word, kBoundary).all().empty());
  const auto answers = list(quiet.come_quietly(kBoundary, kBoundary));
  EXPECT_FALSE(quiet.is_quiet());
  EXPECT_TRUE(quiet.has_met(kBoundary));
  (void)waits.hear(1, answers.at(0).word, kBoundary);
  EXPECT_TRUE(waits.has_met(kBoundary));
}

TEST(Dissemination, UnneededQuietMeetingIsSkipped) {
  Dissemination member(1, 4);
  (void)member.come_quietly(kBoundary, kBoundary);
  EXPECT_EQ(member.come(kNext, kNext).all().size(), 1U);
  EXPECT_FALSE(member.has_met(kBoundary));
  EXPECT_TRUE(member.hear(0, {kBoundary, 0, false}, kNext).all().empty()) << "too late";
}

TEST(Dissemination, NoMemberMeetsBeforeTheLastHasCome) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::uint32_t count = 2 + seed % 20;
    Gang gang(count, {.loss_percent = 20, .twice_percent = 5, .most_delay = 2ms}, seed);
    TimePoint boundary = kBoundary;
    for (int meeting = 0; meeting < 5; ++meeting, boundary += 50ms) {
      for (std::uint32_t m = 0; m < count; ++m) {
        gang.come_at(m, boundary + (m * 37 + seed) % 11 * 1ms, boundary);
      }
      gang.run_until(boundary + 49ms);
    }
    gang.run_until(boundary + 1s);
    EXPECT_TRUE(gang.is_safe) << seed;
    EXPECT_EQ(gang.met(boundary - 50ms), count) << seed;
  }
}

TEST(Dissemination, SlightlyDifferentBoundariesCountAsTheSame) {
  Gang gang(3, {}, 1);
  for (std::uint32_t m = 0; m < 3; ++m) gang.come_at(m, kBoundary, kBoundary + m * 100us);
  gang.run_until(kBoundary + 1s);
  EXPECT_EQ(gang.met(kBoundary + 100us), 3U);
}

TEST(Dissemination, FinishedMemberRepeatsItsLostWord) {
  Dissemination a(0, 2), b(1, 2);
  (void)a.come(kBoundary, kBoundary);
  const auto lost = b.come(kBoundary, kBoundary);
  (void)b.hear(0, {kBoundary, 0, false}, kBoundary);
  EXPECT_TRUE(b.has_met(kBoundary));

  EXPECT_TRUE(a.advance(kBoundary + 199us).all().empty());
  const auto asks = list(a.advance(kBoundary + 200us));
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].to, 1U);
  EXPECT_EQ(asks[0].word, (Word{kBoundary, 0, true}));

  (void)b.come(kNext, kNext);  // has gone on in the meantime
  const auto answer = list(b.hear(0, asks[0].word, kNext));
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].word, lost.all()[0].word);
  (void)a.hear(1, answer[0].word, kNext);
  EXPECT_TRUE(a.has_met(kBoundary));
}

TEST(Dissemination, MemberThatHasNotComeDoesNotAnswer) {
  Dissemination b(1, 2);
  EXPECT_TRUE(b.hear(0, {kBoundary, 0, true}, kBoundary).all().empty());
  (void)b.come(kBoundary, kBoundary);  // and gives up
  (void)b.come(kNext, kNext);
  EXPECT_TRUE(b.hear(0, {kBoundary, 0, true}, kNext).all().empty());
}

TEST(Dissemination, AsksLessOftenWithTimeAndStops) {
  Dissemination a(0, 2);
  (void)a.come(kBoundary, kBoundary);
  std::vector<Duration> pauses;
  TimePoint before = kBoundary;
  while (const auto due = a.next_deadline()) {
    pauses.push_back(*due - before);
    before = *due;
    EXPECT_EQ(a.advance(*due).all().size(), 1U);
  }
  EXPECT_EQ(pauses.size(), Dissemination::kMaxAsks);
  EXPECT_EQ(pauses[0], 200us);
  EXPECT_EQ(pauses[Dissemination::kAsksPerPause - 1], 200us);
  EXPECT_EQ(pauses[Dissemination::kAsksPerPause], 400us);
  EXPECT_EQ(pauses.back(), Dissemination::kSlowestAsk);
}

TEST(Dissemination, MemberWithoutTasksComesOnFirstWord) {
  Gang gang(8, {.loss_percent = 20, .twice_percent = 5, .most_delay = 1ms}, 3);
  gang[2].set_attends_unasked();
  gang[5].set_attends_unasked();
  for (std::uint32_t m : {0U, 1U, 3U, 4U, 6U, 7U}) gang.come_at(m, kBoundary, kBoundary);
  gang.run_until(kBoundary + 100ms);
  EXPECT_EQ(gang.met(kBoundary), 8U);
}

TEST(Dissemination, IgnoresWordsThatDoNotFit) {
  Dissemination a(0, 5);
  (void)a.come(kBoundary, kBoundary);
  const std::vector<std::pair<std::uint32_t, Word>> misfits = {
      {1, {kBoundary, 0, false}},          // the word of round 0 comes from member 4
      {4, {kBoundary, 0, true}},           // ... and member 1 asks for it
      {4, {kBoundary, 3, false}},          // no such round
      {4, {kBoundary, UINT32_MAX, true}},  //
      {9, {kBoundary, 0, false}},          // no such member
      {4, {kBoundary - 1s, 0, false}},     // long over
      {4, {TimePoint::max(), 0, false}},   // no clock shows this
      {4, {TimePoint::min(), 0, false}},
  };
  for (const auto& [from, word] : misfits) {
    EXPECT_TRUE(a.hear(from, word, kBoundary).all().empty());
  }
  EXPECT_EQ(a.ignored(), misfits.size());
  EXPECT_FALSE(a.has_met(kBoundary));
}

TEST(Dissemination, SurvivesRandomWords) {
  std::mt19937_64 chance(7);
  for (std::uint32_t count : {1U, 2U, 7U, 16'384U}) {
    Dissemination member(0, count);
    for (int i = 0; i < 20'000; ++i) {
      const TimePoint boundary{chance() % 2 == 0 ? Duration{static_cast<Duration::rep>(chance())}
                                                 : kBoundary.time_since_epoch() + i * 1us};
      const Word word{boundary, static_cast<std::uint32_t>(chance() % 16), chance() % 2 == 0};
      if (i % 100 == 0) (void)member.come(kBoundary + i * 1us, kBoundary);
      const auto from = static_cast<std::uint32_t>(chance() % (count + 1));
      EXPECT_LE(member.hear(from, word, kBoundary + i * 1us).all().size(),
                Dissemination::kMaxRounds + 2U);
    }
  }
}

}  // namespace
}  // namespace score::gang
