// These tests connect daemons over real sockets of the loopback interface.
#include "scored/control/timetables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace score::control {
namespace {

using namespace std::chrono_literals;

const in_addr kLoopback{.s_addr = htonl(INADDR_LOOPBACK)};
constexpr LinkKey kSecret{1, 2};

class TimetableDaemons : public testing::Test {
 protected:
  struct Daemon {
    std::unique_ptr<ControlNetwork> network;
    std::unique_ptr<Timetables> timetables;
    std::vector<std::string> delivered;
    bool is_deaf = false;
  };

  explicit TimetableDaemons(std::uint32_t size = 4) : daemons_(size) {
    for (Daemon& daemon : daemons_) {
      daemon.network = std::make_unique<ControlNetwork>(
          io_.get_executor(), clock_, [&daemon](std::uint32_t source, const Message& message) {
            if (daemon.is_deaf) return;
            EXPECT_TRUE(daemon.timetables->handle(source, message));
          });
      daemon.timetables = std::make_unique<Timetables>(
          io_.get_executor(), clock_, *daemon.network,
          Timetables::Handlers{
              .unheard = [this] { return unheard_; },
              .deliver = [&daemon](const auto& body) { daemon.delivered.push_back(body); },
              .send_by_tls = [this](auto rank,
                                    const auto& body) { by_tls_.emplace_back(rank, body); }});
      EXPECT_TRUE(daemon.network->open(kLoopback, tasks_));
      tasks_.spawn("timetables", daemon.timetables->run());
    }
    join_all();
  }

  ~TimetableDaemons() override {
    tasks_.cancel();
    EXPECT_TRUE(run_until([this] { return tasks_.empty(); }));
  }

  void join_all() {
    ++generation_;
    for (std::uint32_t rank = 0; rank < daemons_.size(); ++rank) join(rank);
  }

  void join(std::uint32_t rank) {
    EXPECT_TRUE(daemons_[rank].network->join(roster(), rank, keys_of(rank)));
    daemons_[rank].timetables->roster_changed();
  }

  [[nodiscard]] Roster roster() const {
    Roster roster{generation_, 0x1234, {}};
    for (const Daemon& daemon : daemons_) {
      roster.members.push_back({daemon.network->address(), {}, true});
    }
    return roster;
  }

  [[nodiscard]] LinkKeys keys_of(std::uint32_t rank) const {
    const Roster all = roster();
    return RosterKeys(all, kSecret).of(rank);
  }

  void publish() { daemons_[0].timetables->publish({{"a", {1, 3}}, {"b", {2}}}); }

  [[nodiscard]] bool all_have() const {
    return daemons_[1].delivered == std::vector<std::string>{"a"} &&
           daemons_[2].delivered == std::vector<std::string>{"b"} &&
           daemons_[3].delivered == std::vector<std::string>{"a"};
  }

  // The daemons' time moves only between turns, so that a busy machine makes no message late.
  template <class Condition>
  bool run_until(Condition condition, int turns = 20'000) {
    for (; !condition() && turns > 0; --turns) {
      io_.restart();
      io_.run_for(1ms);
      clock_.run_for(100us);
    }
    return condition();
  }

  using ByTls = std::vector<std::pair<std::uint32_t, std::string>>;

  asio::io_context io_{1};
  SimClock clock_{io_};
  TaskGroup tasks_{io_.get_executor(), [](std::string_view, const std::exception_ptr&) {}};
  ControlNetwork intruder_{io_.get_executor(), clock_, [](std::uint32_t, const Message&) {}};
  std::vector<Daemon> daemons_;
  gang::Positions unheard_;
  ByTls by_tls_;
  std::uint32_t generation_ = 7;
};

TEST_F(TimetableDaemons, EachNodeGetsItsTimetable) {
  publish();
  EXPECT_TRUE(run_until([&] { return all_have(); }));
}

TEST_F(TimetableDaemons, UnconfirmedTimetablesGoOverTls) {
  daemons_[2].is_deaf = true;
  publish();
  EXPECT_TRUE(run_until([&] { return by_tls_ == ByTls{{2, "b"}}; }));
  EXPECT_TRUE(daemons_[2].delivered.empty());
}

TEST_F(TimetableDaemons, UnheardMembersGetTheirsOverTls) {
  unheard_.add({3, 4});
  publish();
  EXPECT_EQ(by_tls_, (ByTls{{3, "a"}}));
}

TEST_F(TimetableDaemons, WithoutNetworkAllGoesOverTls) {
  daemons_[0].network->leave();
  daemons_[0].timetables->roster_changed();
  publish();
  EXPECT_EQ(by_tls_, (ByTls{{1, "a"}, {3, "a"}, {2, "b"}}));
}

TEST_F(TimetableDaemons, NewRosterSendsUnconfirmedTimetablesOverTls) {
  publish();
  join_all();
  EXPECT_EQ(by_tls_, (ByTls{{1, "a"}, {3, "a"}, {2, "b"}}));
}

// With a fan-out of 16, rank 2 is below rank 1.
class TimetablesInATallTree : public TimetableDaemons {
 protected:
  TimetablesInATallTree() : TimetableDaemons(18) {}
};

TEST_F(TimetablesInATallTree, MemberRelaysAfterJoiningSameRosterAgain) {
  using Bodies = std::vector<std::string>;
  daemons_[0].timetables->publish({{"a", {2}}});
  EXPECT_TRUE(run_until([&] { return daemons_[2].delivered == Bodies{"a"}; }));
  join(1);
  daemons_[0].timetables->publish({{"b", {2}}});
  EXPECT_TRUE(run_until([&] { return daemons_[2].delivered == Bodies{"a", "b"}; }));
  EXPECT_TRUE(by_tls_.empty());
}

TEST_F(TimetablesInATallTree, MemberOnTheWayCannotChangeATimetable) {
  wire::ControlTimetables forged;
  forged.set_id(1);
  auto& part = *forged.add_parts();
  part.add_to(2);
  part.add_to(1);
  part.set_timetable("forged");
  for (const bool is_tagged : {false, true}) {
    const auto order = order_of(proto::digest_of("forged"));
    if (is_tagged) part.add_tags(daemons_[1].network->keys().tag_to(2, order));
    EXPECT_TRUE(daemons_[1].network->send(2, forged));
    forged.set_id(2);
  }
  daemons_[0].timetables->publish({{"a", {2}}});
  EXPECT_TRUE(run_until([&] { return !daemons_[2].delivered.empty(); }));
  EXPECT_EQ(daemons_[2].delivered, std::vector<std::string>{"a"});
  EXPECT_GE(daemons_[2].network->counters().received, 3U);
}

TEST_F(TimetablesInATallTree, MemberOnTheWayCannotConfirmForOthers) {
  daemons_[1].is_deaf = true;
  daemons_[0].timetables->publish({{"a", {2}}});
  wire::ControlTimetablesTaken taken;
  taken.set_is_confirmed(true);
  // The first bundle of a roster has the time of joining plus 1.
  taken.set_id(static_cast<std::uint64_t>(clock_.now().time_since_epoch().count()) + 1);
  EXPECT_TRUE(daemons_[0].timetables->handle(
      1, {proto::FrameType::ControlTimetablesTaken, taken.SerializeAsString()}));
  EXPECT_EQ(by_tls_, (ByTls{{2, "a"}}));
}

// The intruder has the roster's key, as every member, and the keys of rank 3.
TEST_F(TimetableDaemons, MemberCannotActAsTheHead) {
  EXPECT_TRUE(intruder_.open(kLoopback, tasks_));
  EXPECT_TRUE(intruder_.join(roster(), kHeadRank, keys_of(3)));
  wire::ControlTimetables forged;
  forged.set_id(1);
  auto& part = *forged.add_parts();
  part.add_to(2);
  part.add_to(1);
  part.set_timetable("forged");
  part.add_tags(intruder_.keys().tag_to(2, order_of(proto::digest_of("forged"))));
  EXPECT_TRUE(intruder_.send(2, forged));
  EXPECT_TRUE(run_until([&] { return daemons_[2].network->counters().untagged == 1; }));
  EXPECT_TRUE(daemons_[2].delivered.empty());
}

TEST_F(TimetableDaemons, MemberWithoutKeysGetsTimetablesOverTls) {
  EXPECT_TRUE(daemons_[2].network->join(roster(), 2));
  daemons_[2].timetables->roster_changed();
  publish();
  EXPECT_TRUE(run_until([&] { return by_tls_ == ByTls{{2, "b"}}; }));
}

TEST_F(TimetableDaemons, OversizedTimetablesGoOverTls) {
  const std::string large(kMostMessageBytes, 'x');
  daemons_[0].timetables->publish({{large, {1}}});
  EXPECT_TRUE(run_until([&] { return by_tls_ == ByTls{{1, large}}; }));
}

TEST_F(TimetableDaemons, SurviveRandomMessages) {
  std::minstd_rand chance(1);
  publish();
  for (int i = 0; i < 3'000; ++i) {
    std::string bytes(chance() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(chance());
    const auto type = chance() % 2 == 0 ? proto::FrameType::ControlTimetables
                                        : proto::FrameType::ControlTimetablesTaken;
    const auto source = static_cast<std::uint32_t>(chance() % 6);
    (void)daemons_[chance() % daemons_.size()].timetables->handle(source, {type, bytes});
  }
  wire::ControlTimetables message;
  auto& part = *message.add_parts();
  for (std::uint32_t i = 0; i < 50; ++i) part.add_to(UINT32_MAX - i);
  part.set_timetable("c");
  (void)daemons_[1].timetables->handle(
      kHeadRank, {proto::FrameType::ControlTimetables, message.SerializeAsString()});
  EXPECT_TRUE(std::ranges::count(daemons_[1].delivered, "c") == 0);
}

TEST(ControlTimetables, SurviveTheWire) {
  gang::TimetableRelay::Bundle bundle{5, {}};
  gang::Positions to;
  to.add({1, 4});
  to.add({7, 8});
  bundle.parts.push_back({to, "a", {5, 6, 7, 8}});
  const auto read = from_wire(to_wire(bundle));
  EXPECT_EQ(read.id, 5U);
  ASSERT_EQ(read.parts.size(), 1U);
  EXPECT_EQ(read.parts[0].to, to);
  EXPECT_EQ(read.parts[0].body, "a");
  EXPECT_EQ(read.parts[0].tags, bundle.parts[0].tags);
  const auto ack = from_wire(to_wire(gang::TimetableRelay::Ack{6, true, to, 9}));
  EXPECT_TRUE(ack.id == 6 && ack.is_confirmed && ack.missing == to && ack.proof == 9);
}

}  // namespace
}  // namespace score::control
