// These tests connect daemons over real sockets of the loopback interface.
#include "scored/control/heartbeats.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <array>
#include <memory>
#include <random>
#include <set>
#include <string>

namespace score::control {
namespace {

using namespace std::chrono_literals;

const in_addr kLoopback{.s_addr = htonl(INADDR_LOOPBACK)};

class Beats : public testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 3;

  struct Node {
    std::unique_ptr<ControlNetwork> network;
    gang::ClockFilter filter;
    std::unique_ptr<NodeHeartbeats> beats;
    int by_tls = 0;
    bool is_deaf = false;
    bool tls_is_deaf = false;
  };

  Beats() {
    head_ = std::make_unique<ControlNetwork>(io_.get_executor(), clock_,
                                             [this](std::uint32_t source, const Message& message) {
                                               is_head_deaf_ || beats_->handle(source, message);
                                             });
    beats_ = std::make_unique<HeadHeartbeats>(
        io_.get_executor(), clock_, *head_, [this](const HeadHeartbeats::News& news) {
          alive_.insert(news.alive.begin(), news.alive.end());
          silent_.insert(news.silent.begin(), news.silent.end());
          if (news.deaf) deaf_.insert(*news.deaf);
          if (news.hearing) deaf_.erase(*news.hearing);
        });
    EXPECT_TRUE(head_->open(kLoopback, tasks_));
    for (Node& node : nodes_) build(node);
    join_all();
    tasks_.spawn("head", beats_->run());
    for (Node& node : nodes_) tasks_.spawn("node", node.beats->run());
  }

  ~Beats() override {
    tasks_.cancel();
    EXPECT_TRUE(run_until([this] { return tasks_.empty(); }));
  }

  void build(Node& node) {
    node.network = std::make_unique<ControlNetwork>(
        io_.get_executor(), clock_, [&node](std::uint32_t source, const Message& message) {
          if (node.is_deaf) return;
          EXPECT_TRUE(node.beats->handle(source, message));
        });
    node.beats = std::make_unique<NodeHeartbeats>(
        io_.get_executor(), clock_, *node.network, node.filter,
        NodeHeartbeats::Handlers{
            .beat_by_tls = [&node] { ++node.by_tls; },
            .clock = [&node](const gang::ClockSample& sample) { (void)node.filter.add(sample); },
            .hears_nothing = [&node] { return node.tls_is_deaf; }});
    EXPECT_TRUE(node.network->open(kLoopback, tasks_));
  }

  void join_all() {
    Roster roster{7, 0x1234, {}, fanout_};
    roster.members.push_back({head_->address(), {}});
    for (const Node& node : nodes_) roster.members.push_back({node.network->address(), {}});
    EXPECT_TRUE(head_->join(roster, kHeadRank));
    beats_->roster_changed();
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      EXPECT_TRUE(nodes_[n].network->join(roster, rank_of_node(n)));
      nodes_[n].beats->roster_changed();
    }
  }

  template <class Condition>
  bool run_until(Condition condition, Duration limit = 20s) {
    const TimePoint end = clock_.now() + limit;
    while (!condition() && clock_.now() < end) {
      io_.restart();
      io_.run_for(5ms);
    }
    return condition();
  }

  asio::io_context io_{1};
  SteadyClock clock_;
  TaskGroup tasks_{io_.get_executor(), [](std::string_view, const std::exception_ptr&) {}};
  std::unique_ptr<ControlNetwork> head_;
  std::unique_ptr<HeadHeartbeats> beats_;
  std::array<Node, kSize - 1> nodes_;
  std::set<std::uint32_t> alive_, silent_, deaf_;
  bool is_head_deaf_ = false;
  std::uint32_t fanout_ = gang::Tree::kDefaultFanout;
};

TEST_F(Beats, HeadHearsAllNodesAndNodesLearnTime) {
  EXPECT_TRUE(run_until([&] {
    return alive_ == std::set<std::uint32_t>{1, 2} && nodes_[0].beats->is_linked() &&
           nodes_[1].beats->is_linked() && nodes_[0].filter.synchronised();
  }));
  EXPECT_TRUE(silent_.empty());
  const TimePoint now = clock_.now();
  EXPECT_LE(std::chrono::abs(nodes_[0].filter.to_cluster(now) - now),
            nodes_[0].filter.error_bound(now));
}

TEST_F(Beats, NodeWithoutAnswersUsesTls) {
  is_head_deaf_ = true;
  EXPECT_TRUE(run_until([&] { return nodes_[0].by_tls > 0 && nodes_[1].by_tls > 0; }));
  EXPECT_FALSE(nodes_[0].beats->is_linked());
}

TEST_F(Beats, NodeThatHearsNothingIsNotHeard) {
  EXPECT_TRUE(run_until([&] { return alive_ == std::set<std::uint32_t>{1, 2}; }));
  nodes_[0].is_deaf = true;
  EXPECT_TRUE(run_until([&] { return silent_.contains(1); }));
  alive_.clear();
  nodes_[0].is_deaf = false;
  EXPECT_TRUE(run_until([&] { return alive_.contains(1); }));
}

TEST_F(Beats, DeafNodeNotifiesHeadUntilItHearsAgain) {
  EXPECT_TRUE(run_until([&] { return alive_ == std::set<std::uint32_t>{1, 2}; }));
  nodes_[0].is_deaf = nodes_[0].tls_is_deaf = true;
  EXPECT_TRUE(run_until([&] { return deaf_ == std::set<std::uint32_t>{1}; }));
  EXPECT_TRUE(nodes_[0].beats->hears_nothing());
  const int by_tls = nodes_[0].by_tls;
  nodes_[0].is_deaf = nodes_[0].tls_is_deaf = false;
  EXPECT_TRUE(run_until([&] { return deaf_.empty(); }));
  EXPECT_FALSE(nodes_[0].beats->hears_nothing());
  EXPECT_GT(nodes_[0].by_tls, by_tls) << "it says so over TLS, too";
}

TEST_F(Beats, NodeReachedByTlsIsNotDeaf) {
  EXPECT_TRUE(run_until([&] { return alive_ == std::set<std::uint32_t>{1, 2}; }));
  nodes_[0].is_deaf = true;
  EXPECT_TRUE(run_until([&] { return silent_.contains(1); }));
  EXPECT_TRUE(deaf_.empty());
}

TEST_F(Beats, SurviveRandomMessages) {
  std::minstd_rand chance(1);
  for (int i = 0; i < 3'000; ++i) {
    std::string bytes(chance() % 60, '\0');
    for (char& byte : bytes) byte = static_cast<char>(chance());
    const auto type =
        chance() % 2 == 0 ? proto::FrameType::ControlBeat : proto::FrameType::ControlAnswer;
    const auto source = static_cast<std::uint32_t>(chance() % 5);
    (void)beats_->handle(source, {type, bytes});
    (void)nodes_[0].beats->handle(source, {type, bytes});
  }
  wire::ControlBeat beat;
  for (std::uint32_t i = 0; i < 50; ++i) beat.add_silent(UINT32_MAX - i);
  const gang::SubtreeSummary summary = from_wire(beat);
  EXPECT_LE(summary.silent.ranges().size(), 25U);
}

TEST(ControlBeat, FitsItsDatagram) {
  gang::SubtreeSummary summary;
  for (std::uint32_t i = 0; i < 4'000; ++i) {
    summary.silent.add({4 * i, 4 * i + 1});
    summary.unknown.add({4 * i + 2, 4 * i + 3});
  }
  wire::ControlBeat beat;
  beat.set_node_sent_ns(INT64_MAX);
  to_wire(summary, beat);
  EXPECT_LE(beat.ByteSizeLong(), kMostMessageBytes);
  const gang::SubtreeSummary read = from_wire(beat);
  EXPECT_EQ(read.silent.ranges().front(), (gang::PositionRange{0, 1}));
}

}  // namespace
}  // namespace score::control
