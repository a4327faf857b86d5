// These tests let nodes of a job meet over real sockets, without the head.
#include "scored/node/meeting/direct_meetings.hpp"

#include "scored/control/context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace score::node {
namespace {

using base::Meeting;

constexpr AttemptId kAttempt{0x701};
constexpr TimePoint kBoundary{100s};

// Nodes 0 ... size - 1 have ranks 1 ... size.
struct Nodes {
  explicit Nodes(std::uint32_t size) {
    const in_addr loopback{.s_addr = htonl(INADDR_LOOPBACK)};
    control::Roster roster{5, 6, {control::MemberAddress{{{0, 0, 0, 0, 0, 1}}, {}}}};
    std::vector<UniqueFd> sockets;
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t i = 0; i < size; ++i) {
      sockets.push_back(*control::open_socket(loopback));
      const auto address = control::address_of(sockets.back().get());
      roster.members.push_back({address, address});
      ranks.push_back(control::rank_of_node(i));
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      auto waited_on = *duplicate(sockets[i].get());
      auto endpoint =
          control::open_context(roster, ranks[i], control::Use::Meetings, std::move(sockets[i]));
      channels.push_back(
          std::make_unique<MeetingChannel>(*std::move(endpoint), std::move(waited_on)));
      gangs.push_back(std::make_unique<DirectGang>(kAttempt, ranks, i));
    }
  }

  void come(std::size_t node, Meeting meeting = Meeting::Ready) {
    gangs[node]->come(meeting, kBoundary, now, *channels[node]);
  }

  // Lets all nodes receive and ask for missing words for this time.
  void run(Duration time) {
    for (const TimePoint end = now + time; now < end; now += 100us) {
      for (std::size_t i = 0; i < gangs.size(); ++i) {
        while (const auto received = channels[i]->receive()) {
          if (!is_deaf(i)) gangs[i]->hear(*received, now, *channels[i]);
        }
        if (!is_deaf(i)) gangs[i]->advance(now, *channels[i]);
      }
    }
  }

  [[nodiscard]] bool is_deaf(std::size_t node) const { return deaf == static_cast<int>(node); }

  [[nodiscard]] bool all_met(Meeting meeting = Meeting::Ready) const {
    return std::ranges::all_of(gangs,
                               [&](const auto& gang) { return gang->has_met(meeting, kBoundary); });
  }

  TimePoint now{1s};
  int deaf = -1;
  std::vector<std::unique_ptr<MeetingChannel>> channels;
  std::vector<std::unique_ptr<DirectGang>> gangs;
};

TEST(DirectMeetings, HaveMetWhenTheLastNodeHasCome) {
  for (const std::uint32_t size : {2U, 3U, 8U}) {
    Nodes nodes(size);
    for (std::size_t i = 1; i < size; ++i) nodes.come(i);
    nodes.run(1ms);
    for (const auto& gang : nodes.gangs) EXPECT_FALSE(gang->has_met(Meeting::Ready, kBoundary));
    nodes.come(0);
    nodes.run(1ms);
    EXPECT_TRUE(nodes.all_met()) << size;
    EXPECT_FALSE(nodes.all_met(Meeting::Stopped)) << "another meeting";
  }
}

TEST(DirectMeetings, QuietNodeIsSilentUntilOneNeedsMeeting) {
  Nodes nodes(3);
  for (const std::size_t i : {1U, 2U}) {
    nodes.gangs[i]->come_quietly(Meeting::Stopped, kBoundary, nodes.now, *nodes.channels[i]);
  }
  nodes.run(5ms);
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_FALSE(nodes.channels[i]->receive());
  EXPECT_FALSE(nodes.gangs[1]->take_overdue(nodes.now)) << "no one waits";
  nodes.come(0, Meeting::Stopped);
  nodes.run(5ms);
  EXPECT_TRUE(nodes.all_met(Meeting::Stopped));
}

TEST(DirectMeetings, LostWordsAreRequestedAgain) {
  Nodes nodes(4);
  nodes.deaf = 2;
  for (std::size_t i = 0; i < 4; ++i) nodes.come(i);
  nodes.run(1ms);
  EXPECT_FALSE(nodes.all_met());
  nodes.deaf = -1;
  nodes.run(10ms);
  EXPECT_TRUE(nodes.all_met());
}

TEST(DirectMeetings, OverdueMeetingIsReportedOnce) {
  Nodes nodes(2);
  nodes.come(0);
  nodes.come(0, Meeting::Stopped);
  nodes.come(1, Meeting::Stopped);
  nodes.run(1ms);
  EXPECT_FALSE(nodes.gangs[0]->take_overdue(nodes.now));
  nodes.run(2ms);
  const auto overdue = nodes.gangs[0]->take_overdue(nodes.now);
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->meeting, Meeting::Ready);
  EXPECT_EQ(overdue->boundary, kBoundary);
  EXPECT_FALSE(nodes.gangs[0]->take_overdue(nodes.now)) << "the other meeting was met";
}

TEST(DirectMeetings, OnlyMembersWithAChannelCount) {
  Nodes nodes(2);
  EXPECT_TRUE(nodes.gangs[0]->is_reached_by(*nodes.channels[0]));
  EXPECT_FALSE(DirectGang(kAttempt, {1, 3}, 0).is_reached_by(*nodes.channels[0])) << "no member";
  EXPECT_FALSE(DirectGang(kAttempt, {1, 0}, 0).is_reached_by(*nodes.channels[0])) << "the head";
}

TEST(MeetingDatagram, SurvivesTheWire) {
  const MeetingWord word{kAttempt, Meeting::Ready, {kBoundary, 3, true}};
  const MeetingDatagram bytes = encode(word);
  EXPECT_EQ(decode(std::as_bytes(std::span(&bytes, 1))), word);
}

TEST(MeetingDatagram, OtherBytesAreRejected) {
  const MeetingDatagram good = encode({kAttempt, Meeting::Ready, {kBoundary, 3, true}});
  const auto bytes = std::as_bytes(std::span(&good, 1));
  for (std::size_t n = 0; n < sizeof good; ++n) EXPECT_FALSE(decode(bytes.first(n)));
  const auto is_none = [&](auto change) {
    MeetingDatagram bent = good;
    change(bent);
    return !decode(std::as_bytes(std::span(&bent, 1)));
  };
  EXPECT_TRUE(is_none([](MeetingDatagram& d) { d.type = 300; }));
  EXPECT_TRUE(is_none([](MeetingDatagram& d) { d.version = 2; }));
  EXPECT_TRUE(is_none([](MeetingDatagram& d) { d.meeting = 2; }));
  EXPECT_TRUE(is_none([](MeetingDatagram& d) { d.round = 14; }));
  EXPECT_TRUE(is_none([](MeetingDatagram& d) { d.asks = 2; }));
  EXPECT_TRUE(is_none([](MeetingDatagram& d) { d.reserved = 1; }));
  // A gang accepts any word without harm.
  Nodes nodes(2);
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    MeetingDatagram noise = good;
    noise.round = static_cast<std::uint8_t>(random() % 14);
    noise.boundary_ns = static_cast<std::int64_t>(random());
    const auto word = decode(std::as_bytes(std::span(&noise, 1)));
    ASSERT_TRUE(word);
    nodes.gangs[0]->hear({static_cast<std::uint32_t>(random() % 4), *word}, nodes.now,
                         *nodes.channels[0]);
  }
  EXPECT_FALSE(nodes.gangs[0]->has_met(Meeting::Ready, kBoundary));
}

}  // namespace
}  // namespace score::node
