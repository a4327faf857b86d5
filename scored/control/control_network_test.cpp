// These tests connect daemons over real sockets of the loopback interface. They check which
// datagrams arrive, and that all others are dropped.
#include "scored/control/control_network.hpp"

#include "proto/control.pb.h"
#include "proto/frames/parse.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace score::control {
namespace {

const in_addr kLoopback{.s_addr = htonl(INADDR_LOOPBACK)};

struct Got {
  std::uint32_t source;
  proto::FrameType type;
  std::string payload;
};

wire::ControlAnswer answer(std::int64_t tag) {
  wire::ControlAnswer message;
  message.set_node_sent_ns(tag);
  return message;
}

class Daemons : public testing::Test {
 protected:
  static constexpr std::uint32_t kSize = 3;

  Daemons() {
    for (std::uint32_t i = 0; i < kSize; ++i) {
      networks_.push_back(std::make_unique<ControlNetwork>(
          io_.get_executor(), clock_, [this, i](std::uint32_t source, const Message& message) {
            got_[i].push_back({source, message.type, std::string(message.payload)});
          }));
      EXPECT_TRUE(networks_[i]->open(kLoopback, tasks_));
    }
    join_all(7, 0x1234);
  }

  ~Daemons() override {
    networks_.clear();  // ends their tasks
    run_some();
  }

  [[nodiscard]] Roster roster(std::uint32_t generation, std::uint64_t key) const {
    Roster made{generation, key, {}};
    for (const auto& network : networks_) made.members.push_back({network->address(), {}});
    return made;
  }

  void join_all(std::uint32_t generation, std::uint64_t key) {
    for (std::uint32_t i = 0; i < kSize; ++i) {
      EXPECT_TRUE(networks_[i]->join(roster(generation, key), i));
    }
  }

  void run_some() {
    io_.restart();
    io_.poll();
  }

  template <class Done>
  void run_until(Done done) {
    io_.restart();
    for (int i = 0; i < 100'000 && !done(); ++i) io_.run_one_for(10ms);
    EXPECT_TRUE(done());
  }

  void throw_at(std::uint32_t rank, std::span<const std::byte> bytes) const {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    const auto address = networks_[rank]->address();
    std::memcpy(&to.sin_addr, address.bytes.data(), 4);
    std::memcpy(&to.sin_port, address.bytes.data() + 4, 2);
    EXPECT_EQ(
        sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
        static_cast<ssize_t>(bytes.size()));
    close(fd);
  }

  // Describes a frame of rank 1 for rank 0 as its endpoint would make it, with changes.
  struct Forgery {
    std::uint64_t key = 0x1234;
    std::uint32_t generation = 7, source = 1, destination = 0;
    std::uint16_t channel = 0;
    std::uint16_t type = static_cast<std::uint16_t>(proto::FrameType::ControlAnswer);
    std::uint16_t version = kMessageVersion;
    std::string payload = answer(3).SerializeAsString();
    std::size_t cut = 0;  // number of bytes missing at the end of the datagram
  };

  static std::vector<std::byte> make(const Forgery& f) {
    std::vector<std::byte> body(sizeof(MessageHeader) + f.payload.size());
    const MessageHeader header{f.type, f.version};
    std::memcpy(body.data(), &header, sizeof header);
    std::memcpy(body.data() + sizeof header, f.payload.data(), f.payload.size());
    body.resize(body.size() - f.cut);
    pm::FrameHeader h;
    h.kind = pm::FrameKind::Datagram;
    h.channel = f.channel;
    h.length = static_cast<std::uint16_t>(body.size());
    h.generation = f.generation;
    h.source = f.source;
    h.destination = f.destination;
    pm::seal_by_tag(h, f.key, {}, body);
    std::vector<std::byte> frame(sizeof h);
    std::memcpy(frame.data(), &h, sizeof h);
    frame.insert(frame.end(), body.begin(), body.end());
    return frame;
  }

  // Passes the forgery to rank 0, and returns true if it was handed on.
  bool is_believed(const Forgery& forgery) {
    const std::size_t before = got_[0].size();
    const auto dropped = [this] {
      std::uint64_t sum = 0;
      for (const auto& [reason, count] : networks_[0]->counters().dropped()) sum += count;
      return sum;
    };
    const std::uint64_t dropped_before = dropped();
    throw_at(0, make(forgery));
    run_until([&] { return got_[0].size() > before || dropped() > dropped_before; });
    return got_[0].size() > before;
  }

  asio::io_context io_{1};
  SteadyClock clock_;
  TaskGroup tasks_{io_.get_executor(), [](std::string_view, const std::exception_ptr&) {}};
  std::vector<std::unique_ptr<ControlNetwork>> networks_;
  std::array<std::vector<Got>, kSize> got_;
};

TEST_F(Daemons, MessageReachesEachOfItsRanks) {
  const std::array<std::uint32_t, 3> all{0, 1, 2};
  EXPECT_TRUE(networks_[1]->send(all, answer(42)));
  run_until([&] { return !got_[0].empty() && !got_[2].empty(); });
  EXPECT_TRUE(got_[1].empty()) << "not itself";
  EXPECT_EQ(got_[0][0].source, 1U);
  EXPECT_EQ(got_[0][0].type, proto::FrameType::ControlAnswer);
  EXPECT_EQ(proto::parse<wire::ControlAnswer>(got_[0][0].payload, "answer")->node_sent_ns(), 42);
  EXPECT_EQ(networks_[1]->counters().sent, 2U);
  EXPECT_EQ(networks_[0]->counters().received, 1U);
}

TEST_F(Daemons, OnlyMatchingFramesAreAccepted) {
  EXPECT_TRUE(is_believed({}));
  EXPECT_FALSE(is_believed({.key = 0x1235})) << "another key";
  EXPECT_FALSE(is_believed({.generation = 6})) << "an earlier roster";
  EXPECT_FALSE(is_believed({.generation = 8})) << "a later one";
  EXPECT_FALSE(is_believed({.source = 3})) << "no such rank";
  EXPECT_FALSE(is_believed({.destination = 2})) << "for another";
  EXPECT_FALSE(is_believed({.channel = 1})) << "of the switchers' threads";
  EXPECT_FALSE(is_believed({.type = 1})) << "a frame of clients";
  EXPECT_FALSE(is_believed({.type = 399})) << "no such message";
  EXPECT_FALSE(is_believed({.version = 2}));
  EXPECT_FALSE(is_believed({.payload = std::string(97, 'x')})) << "longer than its type may be";
  EXPECT_FALSE(is_believed({.payload = "", .cut = 1})) << "shorter than the header";
  const ControlCounters c = networks_[0]->counters();
  EXPECT_EQ(c.forged, 1U);
  EXPECT_EQ(c.stale, 2U);
  EXPECT_EQ(c.foreign, 2U);
  EXPECT_EQ(c.unknown, 3U);
  EXPECT_EQ(c.malformed, 3U);
}

TEST_F(Daemons, RandomAndTruncatedBytesAreDroppedAndCounted) {
  std::mt19937 random(5);
  const auto good = make({});
  std::uint64_t thrown = 0;
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes, ++thrown) {
    throw_at(0, std::span(good).first(bytes));
  }
  for (int i = 0; i < 200; ++i, ++thrown) {
    std::vector<std::byte> noise(random() % 1600 + 1);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    throw_at(0, noise);
    if (i % 20 == 0) run_some();
  }
  for (int i = 0; i < 200; ++i, ++thrown) {
    auto bent = good;
    bent[random() % bent.size()] ^= static_cast<std::byte>(1U << random() % 8);
    throw_at(0, bent);
    if (i % 20 == 0) run_some();
  }
  // An empty datagram does not count as a frame, and the kernel may join some of one size.
  run_until([&] {
    return networks_[0]->counters().suspicious() + networks_[0]->counters().stale + 2 >= thrown / 2;
  });
  EXPECT_TRUE(got_[0].empty());
  EXPECT_TRUE(networks_[1]->send(kHeadRank, answer(1)));
  run_until([&] { return !got_[0].empty(); });
}

TEST_F(Daemons, NewRosterExcludesDaemonsWithoutIt) {
  Roster next = roster(8, 0x9999);
  next.members[2] = {};
  EXPECT_TRUE(networks_[0]->join(next, 0));
  EXPECT_TRUE(networks_[1]->join(next, 1));
  EXPECT_TRUE(networks_[2]->send(kHeadRank, answer(1)));
  EXPECT_TRUE(networks_[0]->send(2, answer(1))) << "no member: no message";
  run_until([&] { return networks_[0]->counters().stale == 1; });
  EXPECT_FALSE(is_believed({.key = 0x1234, .generation = 8, .source = 2})) << "the old key";
  EXPECT_TRUE(networks_[1]->send(kHeadRank, answer(2)));
  run_until([&] { return !got_[0].empty(); });
  EXPECT_EQ(got_[0][0].source, 1U);
  EXPECT_TRUE(got_[2].empty());
}

TEST_F(Daemons, WithoutRosterNothingIsSentOrAccepted) {
  networks_[0]->leave();
  EXPECT_FALSE(networks_[0]->is_joined());
  EXPECT_FALSE(networks_[0]->send(1, answer(1)));
  EXPECT_FALSE(is_believed({}));
  EXPECT_EQ(networks_[0]->counters().foreign, 1U);
  EXPECT_FALSE(networks_[0]->join(roster(9, 1), 5)) << "not a rank of it";
  EXPECT_TRUE(networks_[0]->join(roster(7, 0x1234), 0));
  EXPECT_TRUE(is_believed({}));
}

TEST_F(Daemons, HandlerMayReplaceItsNetwork) {
  ControlNetwork other(io_.get_executor(), clock_, [&](std::uint32_t, const Message& message) {
    EXPECT_FALSE(message.payload.empty());
    other.leave();
    EXPECT_EQ(proto::parse<wire::ControlAnswer>(message.payload, "answer")->node_sent_ns(), 5);
  });
  ASSERT_TRUE(other.open(kLoopback, tasks_));
  Roster pair{1, 2, {{networks_[0]->address(), {}}, {other.address(), {}}}};
  ASSERT_TRUE(networks_[0]->join(pair, 0));
  ASSERT_TRUE(other.join(pair, 1));
  EXPECT_TRUE(networks_[0]->send(1, answer(5)));
  run_until([&] { return !other.is_joined(); });
}

// Returns the size of the pages that are in memory, in bytes.
std::size_t resident_bytes() {
  std::size_t pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  EXPECT_EQ(fscanf(file, "%zu %zu", &pages, &resident), 2);
  fclose(file);
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(Daemons, TwoContextsOf4096PeersNeedUnderOneMegabyte) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer keeps what is freed";
#endif
  Roster large{9, 1, {}};
  large.members.resize(4097, {networks_[1]->address(), networks_[1]->address()});
  large.members[1].main = networks_[0]->address();
  const std::size_t before = resident_bytes();
  auto socket = open_socket(kLoopback);
  ASSERT_TRUE(socket);
  auto meetings = open_context(large, 1, Use::Meetings, *std::move(socket));
  ASSERT_TRUE(meetings);
  ASSERT_TRUE(networks_[0]->join(large, 1));
  const std::vector<std::uint32_t> some{5, 77, 4000};
  EXPECT_TRUE(networks_[0]->send(some, answer(1)));
  pm::ReceivedMessage none;
  EXPECT_EQ((*meetings)->receive(none), EAGAIN);
  EXPECT_LT(resident_bytes() - before, 1U << 20);
}

}  // namespace
}  // namespace score::control
