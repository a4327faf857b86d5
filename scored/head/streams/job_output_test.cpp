#include "scored/head/streams/job_output.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::head {
namespace {

constexpr ClientId kFront(1);
constexpr ClientId kWatcher(2);
constexpr std::uint64_t kWindow = 256 * limits::kKiB;
constexpr bool kDriven = true;

OutputChunk chunk(std::string data, std::uint32_t node = 0) {
  OutputChunk made;
  made.node_index = node;
  made.data = std::move(data);
  return made;
}

// Effects has the results of actions by receiver.
struct Effects {
  std::map<ClientId, std::string> sent;
  std::map<std::uint32_t, std::uint64_t> credits;
  std::map<ClientId, int> over;

  void add(const OutputActions& actions) {
    for (const OutputAction& action : actions) {
      if (const auto* send = std::get_if<SendOutput>(&action)) {
        sent[send->client] += send->chunk->data.substr(send->skip);
      } else if (const auto* credit = std::get_if<CreditNode>(&action)) {
        credits[credit->node_index] += credit->bytes;
      } else {
        ++over[std::get<OutputOver>(action).client];
      }
    }
  }
};

TEST(JobOutput, WaitsForTheFrontEnd) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.arrived(chunk("hello ")));
  effects.add(output.arrived(chunk("world")));
  EXPECT_TRUE(effects.sent.empty());
  EXPECT_TRUE(effects.credits.empty());
  effects.add(output.attach(kFront, true, kWindow, 0));
  EXPECT_EQ(effects.sent[kFront], "hello world");
}

TEST(JobOutput, CountsWhatWaitsForTheFrontEnd) {
  JobOutput output(kDriven, false);
  (void)output.attach(kFront, true, kWindow, 0);
  (void)output.arrived(chunk("aaaa"));
  (void)output.arrived(chunk("bb"));
  EXPECT_EQ(output.waiting_bytes(), 6 + 2 * JobOutput::kChunkCost);
  (void)output.taken(kFront, 5);
  EXPECT_EQ(output.waiting_bytes(), 1 + JobOutput::kChunkCost);
  (void)output.taken(kFront, 1);
  EXPECT_EQ(output.waiting_bytes(), 0U);
}

// A byte in a chunk of its own takes much more memory than a byte.
TEST(JobOutput, KeepsFewerBytesOfSmallChunks) {
  JobOutput output(!kDriven, false);
  for (int i = 0; i < 100'000; ++i) (void)output.arrived(chunk("x"));
  EXPECT_GE(output.kept_bytes(), 100U);
  EXPECT_LE(output.kept_bytes() * JobOutput::kChunkCost, JobOutput::kKeptBytes);
}

TEST(JobOutput, RoomGoesToTheNodesOfTakenOutput) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.attach(kFront, true, kWindow, 0));
  effects.add(output.arrived(chunk("aaaa", 3)));
  effects.add(output.arrived(chunk("bb", 5)));
  EXPECT_TRUE(effects.credits.empty());
  effects.add(output.taken(kFront, 5));
  EXPECT_EQ(effects.credits[3], 4u);
  EXPECT_EQ(effects.credits[5], 1u);
  effects.add(output.taken(kFront, 1));
  EXPECT_EQ(effects.credits[5], 2u);
}

TEST(JobOutput, StaysWithinTheFrontEndsWindow) {
  JobOutput output(kDriven, false);
  Effects effects;
  const std::string block(32 * limits::kKiB, 'x');
  effects.add(output.attach(kFront, true, 2 * block.size(), 0));
  for (int i = 0; i < 5; ++i) effects.add(output.arrived(chunk(block)));
  EXPECT_EQ(effects.sent[kFront].size(), 2 * block.size());
  effects.add(output.taken(kFront, block.size()));
  EXPECT_EQ(effects.sent[kFront].size(), 3 * block.size());
}

TEST(JobOutput, ReturningFrontEndContinuesExactly) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.attach(kFront, true, kWindow, 0));
  effects.add(output.arrived(chunk("0123456789")));
  effects.add(output.taken(kFront, 4));
  effects.add(output.leave(kFront));
  EXPECT_FALSE(output.has_front_end());
  effects.add(output.arrived(chunk("abc")));
  Effects again;
  again.add(output.attach(ClientId(9), true, kWindow, 7));
  EXPECT_EQ(again.sent[ClientId(9)], "789abc");
  EXPECT_EQ(again.credits[0], 3u);  // 4 ... 6: it has them, so they count as taken
}

TEST(JobOutput, WatcherNeverStallsTheNodes) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.attach(kFront, true, kWindow, 0));
  effects.add(output.attach(kWatcher, false, JobOutput::kMinWindow, 0));
  const std::string block(32 * limits::kKiB, 'x');
  for (int i = 0; i < 100; ++i) {
    effects.add(output.arrived(chunk(block)));
    effects.add(output.taken(kFront, block.size()));
  }
  EXPECT_EQ(effects.sent[kFront].size(), 100 * block.size());
  EXPECT_EQ(effects.credits[0], 100 * block.size());
  EXPECT_LE(output.kept_bytes(), JobOutput::kKeptBytes + block.size());
  effects.add(output.taken(kWatcher, block.size()));
  EXPECT_NE(effects.sent[kWatcher].find("bytes of output are missing here"), std::string::npos);
}

TEST(JobOutput, DetachedJobNeverWaitsAndKeepsTheEnd) {
  JobOutput output(!kDriven, false);
  Effects effects;
  const std::string block(32 * limits::kKiB, 'x');
  for (int i = 0; i < 50; ++i) effects.add(output.arrived(chunk(block, 2)));
  EXPECT_EQ(effects.credits[2], 50 * block.size());
  EXPECT_GE(output.kept_bytes(), JobOutput::kKeptBytes);
  EXPECT_LE(output.kept_bytes(), JobOutput::kKeptBytes + block.size());
  effects.add(output.attach(kWatcher, false, kWindow, 0));
  EXPECT_GE(effects.sent[kWatcher].size(), JobOutput::kKeptBytes);
}

TEST(JobOutput, FlowsAgainAfterRelease) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.arrived(chunk("stuck")));
  effects.add(output.release());
  EXPECT_EQ(effects.credits[0], 5u);
  effects.add(output.arrived(chunk("more")));
  EXPECT_EQ(effects.credits[0], 9u);
}

TEST(JobOutput, IsOverWhenTheClientHasEverything) {
  JobOutput output(kDriven, false);
  Effects effects;
  const std::string block(32 * limits::kKiB, 'x');
  effects.add(output.attach(kFront, true, block.size(), 0));
  effects.add(output.arrived(chunk(block)));
  effects.add(output.arrived(chunk("tail")));
  effects.add(output.finish());
  EXPECT_EQ(effects.over[kFront], 0);
  EXPECT_FALSE(output.is_delivered());
  effects.add(output.taken(kFront, block.size()));
  EXPECT_EQ(effects.over[kFront], 1);
  effects.add(output.taken(kFront, 4));
  EXPECT_EQ(effects.over[kFront], 1);
  EXPECT_TRUE(output.is_delivered());
}

TEST(JobOutput, KilledJobKeepsOutputForItsFrontEnd) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.arrived(chunk("last words")));
  effects.add(output.release());
  effects.add(output.finish());
  EXPECT_FALSE(output.is_delivered());
  effects.add(output.attach(kFront, true, kWindow, 0));
  EXPECT_EQ(effects.sent[kFront], "last words");
  EXPECT_EQ(effects.over[kFront], 1);
  effects.add(output.taken(kFront, 10));
  EXPECT_TRUE(output.is_delivered());
}

TEST(JobOutput, IsDeliveredAfterTheFrontEndLeft) {
  JobOutput output(kDriven, false);
  (void)output.arrived(chunk("x"));
  (void)output.abandon();
  (void)output.finish();
  EXPECT_TRUE(output.is_delivered());
}

TEST(JobOutput, RestartUsesTheFrontEndsCount) {
  JobOutput output(kDriven, true);
  Effects effects;
  effects.add(output.arrived(chunk("after")));
  effects.add(output.attach(kFront, true, kWindow, 1'000'000));
  EXPECT_EQ(effects.sent[kFront], "after");
  effects.add(output.taken(kFront, 5));
  EXPECT_EQ(effects.credits[0], 5u);
}

// Offsets that overflow would leave a log that ends before it begins.
TEST(JobOutput, SurvivesAnImpossibleOffset) {
  constexpr auto kAbsurd = ~std::uint64_t{0};
  JobOutput counted(kDriven, true);
  Effects effects;
  effects.add(counted.arrived(chunk("before")));
  effects.add(counted.attach(kFront, true, kWindow, kAbsurd));
  effects.add(counted.arrived(chunk("after")));
  effects.add(counted.attach(kWatcher, false, kWindow, 0));
  EXPECT_EQ(effects.sent[kFront], "beforeafter");
}

TEST(JobOutput, IgnoresExcessTakenAndUnknownClients) {
  JobOutput output(kDriven, false);
  Effects effects;
  effects.add(output.attach(kFront, true, kWindow, 0));
  effects.add(output.arrived(chunk("abc")));
  effects.add(output.taken(kFront, ~std::uint64_t{0}));
  effects.add(output.taken(ClientId(77), 5));
  effects.add(output.taken(kFront, 10));
  EXPECT_EQ(effects.credits[0], 3u);
}

// Whatever happens, the front end must get every byte once and in order, and a node must never have
// more than its window in flight.
TEST(JobOutput, DeliversAllInOrderThroughRandomReconnects) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::uint64_t n) { return random() % n; };
    JobOutput output(kDriven, false);
    std::string produced, in_flight;
    std::size_t seen = 0;
    std::uint64_t client = 1;
    bool attached = false;
    std::uint64_t room = limits::kIoWindowBytes;
    const auto apply = [&](const OutputActions& actions) {
      Effects effects;
      effects.add(actions);
      in_flight += effects.sent[ClientId(client)];
      room += effects.credits[0];
    };
    for (int step = 0; step < 2000; ++step) {
      const std::uint64_t what = below(10);
      if (what < 4) {
        const std::uint64_t size = 1 + below(limits::kIoChunkBytes);
        if (size > room) continue;
        room -= size;
        std::string data(size, '\0');
        for (std::size_t i = 0; i < size; i += 97) data[i] = static_cast<char>(random());
        produced += data;
        apply(output.arrived(chunk(data)));
      } else if (what < 8 && attached && !in_flight.empty()) {
        const std::uint64_t bytes = 1 + below(in_flight.size());
        ASSERT_EQ(produced.compare(seen, bytes, in_flight, 0, bytes), 0) << "seed " << seed;
        seen += bytes;
        in_flight.erase(0, bytes);
        apply(output.taken(ClientId(client), bytes));
      } else if (what == 8 && attached) {
        (void)output.leave(ClientId(client++));
        attached = false;
        in_flight.clear();
      } else if (what == 9 && !attached) {
        attached = true;
        apply(output.attach(ClientId(client), true, kWindow, seen));
      }
      ASSERT_LE(room, limits::kIoWindowBytes);
      ASSERT_LE(output.kept_bytes(),
                limits::kIoWindowBytes + JobOutput::kKeptBytes + limits::kIoChunkBytes);
    }
  }
}

TEST(JobOutput, KeepsNoMoreThanItsLimit) {
  JobOutput output(false, false);
  OutputChunk chunk;
  chunk.data = std::string(1'000, 'x');
  output.limit_kept(4'000);
  for (int i = 0; i < 100; ++i) (void)output.arrived(chunk);
  EXPECT_LE(output.kept_bytes(), 4'000U + chunk.data.size());
  EXPECT_GE(output.kept_bytes(), 4'000U);
}

}  // namespace
}  // namespace score::head
