// Two senders share one receiver's buffers. The search checks these claims over every reachable
// state:
//   a sender that was sent GO is never refused again before it has stored its frame, and
//   while one sender waits for GO, the other one stores at most the frames that it was promised
//   before and those that it is invited to in its turn: it cannot starve the waiting one.
// Without the promised buffer the search must find a violation.
#include "pmlib/core/engine.hpp"
#include "pmlib/core/peer_set.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace score::pm::model {
namespace {

struct SmallRules : Rules {
  using Seq = std::uint8_t;
};

using E = Engine<SmallRules>;

struct State {
  std::array<E::Receive, 2> receive;
  std::array<std::uint8_t, 2> bypassed{};  // stores of the other sender while this one waits for GO
  std::array<bool, 2> invited{};           // GO was sent, and nothing was stored since
  SharedRoom room;
  std::uint32_t turn = 0;

  auto key() const {
    return std::tuple(receive[0].recv, receive[0].flags, receive[1].recv, receive[1].flags,
                      bypassed[0], bypassed[1], invited[0], invited[1], room.used, room.promised,
                      turn);
  }
};

class TwoSenders {
 public:
  TwoSenders(std::uint16_t buffers, bool keep_promises) : keep_promises_(keep_promises) {
    State s;
    s.room.capacity = buffers;
    visit(s);
  }

  // Returns the first broken claim, or an empty text.
  std::string explore() {
    while (!todo_.empty() && broken_.empty()) {
      const State s = todo_.back();
      todo_.pop_back();
      for (const std::size_t sender : {0u, 1u}) arrive(s, sender);
      if (s.room.used > 0) release(s);
    }
    return broken_;
  }

  std::size_t states() const { return seen_.size(); }

 private:
  static constexpr std::uint8_t kFrames = 12;      // per sender
  static constexpr std::uint8_t kBypassBound = 2;  // one promised before, one invited in turn

  // Delivers the next frame of `sender`; the search decides when, and how often.
  void arrive(State s, std::size_t sender) {
    E::Receive& mine = s.receive[sender];
    if (mine.recv == kFrames) return;
    const auto seq = E::plus(mine.recv, 1);
    const auto result = engine_.on_packet_data(mine, seq, s.room.has_room_for(mine));
    if (result.arrival == Arrival::Refused && s.invited[sender]) broken_ = "refused after GO";
    if (result.arrival == Arrival::Store) {
      s.room.take(mine);
      s.bypassed[sender] = 0;
      s.invited[sender] = false;
      const std::size_t other = 1 - sender;
      if (s.receive[other].has(E::Receive::kRefused) && ++s.bypassed[other] > kBypassBound) {
        broken_ = "a waiting sender is passed by";
      }
    }
    visit(s);
  }

  // Releases a buffer of the application. Refused senders are invited in turn, as in the channel.
  void release(State s) {
    s.room.release();
    while (s.room.unpromised() > 0) {
      const std::size_t first = s.turn % 2;
      const bool first_waits = s.receive[first].has(E::Receive::kRefused);
      const std::size_t sender = first_waits ? first : 1 - first;
      if (!s.receive[sender].has(E::Receive::kRefused)) break;
      s.turn = static_cast<std::uint32_t>(1 - sender);
      s.room.promise(s.receive[sender]);
      E::on_app_room(s.receive[sender], 1);
      s.receive[sender].flow_count = 0;  // only orders control frames, irrelevant here
      s.bypassed[sender] = 0;
      s.invited[sender] = true;
      if (!keep_promises_) s.room.drop_promise(s.receive[sender]);
      if (!keep_promises_) break;
    }
    visit(s);
  }

  void visit(const State& s) {
    if (seen_.insert(s.key()).second) todo_.push_back(s);
  }

  E engine_{EngineLimits{.window = 4}};
  bool keep_promises_;
  std::string broken_;
  std::vector<State> todo_;
  std::set<decltype(State{}.key())> seen_;
};

TEST(Fairness, WaitingSenderIsServedInTurn) {
  for (const std::uint16_t buffers : {std::uint16_t{1}, std::uint16_t{2}, std::uint16_t{3}}) {
    TwoSenders search(buffers, true);
    EXPECT_EQ(search.explore(), "") << buffers << " buffers";
    EXPECT_GT(search.states(), 500u);
  }
}

TEST(Fairness, SearchFailsWithoutPromisedBuffers) {
  EXPECT_NE(TwoSenders(1, false).explore(), "");
}

TEST(PeerSet, MembersAreServedInTurn) {
  std::array<std::uint64_t, 3> words{};
  PeerSet set(words, 130);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.next_in_turn(5), 130u);
  for (const std::uint32_t peer : {0u, 64u, 129u}) set.insert(peer);
  EXPECT_EQ(set.next_in_turn(0), 0u);
  EXPECT_EQ(set.next_in_turn(1), 64u);
  EXPECT_EQ(set.next_in_turn(65), 129u);
  EXPECT_EQ(set.next_in_turn(130), 0u);
  set.erase(64);
  EXPECT_EQ(set.next_in_turn(1), 129u);
}

}  // namespace
}  // namespace score::pm::model
