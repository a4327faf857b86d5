// These tests check MTTL's guarantees, with the ranks of a job as threads of this process (one
// context each).
#include "pm/mttl.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using mttl::GlobalPtr;
using mttl::Runtime;
using mttl::Task;

// Runs `program` on every rank of a job over shared memory and waits for all.
void run_job(std::uint32_t size, const std::function<Task<void>(Runtime&)>& program) {
  static std::atomic<int> jobs{0};
  const auto base = std::filesystem::temp_directory_path() /
                    ("mttl-test-" + std::to_string(getpid()) + "-" + std::to_string(jobs++));
  const std::string file = base.string() + ".addresses";
  {
    std::ofstream out(file);
    out << "key 77\ndevice none\nshmem " << base.string() << "\n";
    for (std::uint32_t i = 0; i < size; ++i) out << "rank " << i << " here -\n";
  }
  std::vector<std::thread> ranks;
  for (std::uint32_t i = 0; i < size; ++i) {
    ranks.emplace_back([&, i] {
      try {
        pm::Context context(file, i);
        Runtime rt(context);
        rt.run(program(rt));
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << i << ": " << e.what();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  std::filesystem::remove(file);
}

struct Point {
  int x, y;
};

Task<void> invoke_everywhere(Runtime& rt) {
  for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
    const int base = static_cast<int>(rt.self());
    auto f = [base](Runtime& there) { return Point{base, static_cast<int>(there.self())}; };
    const Point p = co_await rt.invoke(rank, f);
    EXPECT_EQ(p.x, base);
    EXPECT_EQ(p.y, static_cast<int>(rank));
  }
}

TEST(Mttl, FunctionObjectRunsOnNamedRank) {
  run_job(3, invoke_everywhere);
}

Task<int> forward(Runtime& rt, int hops) {
  if (hops == 0) co_return static_cast<int>(rt.self());
  auto next = [hops](Runtime& there) { return forward(there, hops - 1); };
  const int end = co_await rt.invoke((rt.self() + 1) % rt.size(), next);
  co_return end;
}

Task<void> chain(Runtime& rt) {
  const int end = co_await forward(rt, 10);
  EXPECT_EQ(end, static_cast<int>((rt.self() + 10) % rt.size()));
}

TEST(Mttl, InvokedCoroutineMayInvokeFurther) {
  run_job(4, chain);
}

Task<void> reduce_and_meet(Runtime& rt) {
  for (int round = 0; round < 20; ++round) {
    const int value = static_cast<int>(rt.self()) + round;
    const int sum = co_await rt.all_reduce(value, [](int a, int b) { return a + b; });
    const int n = static_cast<int>(rt.size());
    EXPECT_EQ(sum, n * (n - 1) / 2 + n * round);
    const int most = co_await rt.all_reduce(value, [](int a, int b) { return a > b ? a : b; });
    EXPECT_EQ(most, n - 1 + round);
  }
}

TEST(Mttl, ReductionsGiveSameResultOnAllRanks) {
  for (const std::uint32_t size : {1u, 2u, 5u}) run_job(size, reduce_and_meet);
}

std::atomic<unsigned> arrived{0};

Task<void> meet_often(Runtime& rt) {
  for (unsigned round = 1; round <= 30; ++round) {
    ++arrived;
    co_await rt.barrier();
    EXPECT_GE(arrived.load(), round * rt.size());
    co_await rt.barrier();
  }
}

TEST(Mttl, BarrierWaitsForAllRanks) {
  arrived = 0;
  run_job(4, meet_often);
}

Task<void> move_memory(Runtime& rt) {
  std::vector<std::uint64_t> mine(1000);
  std::iota(mine.begin(), mine.end(), 1000u * rt.self());
  const pm::Region region = rt.share(std::as_writable_bytes(std::span(mine)));
  // Each rank writes its pointer into a table on rank 0.
  static std::vector<GlobalPtr<std::uint64_t>> table(8);
  const auto pointer = rt.global<std::uint64_t>(region);
  auto tell = [pointer](Runtime&) { table[pointer.rank] = pointer; };
  auto done = rt.invoke(0, tell);
  co_await done;
  co_await rt.barrier();
  const std::uint32_t next = (rt.self() + 1) % rt.size();
  auto ask = [next](Runtime&) { return table[next]; };
  const auto there = co_await rt.invoke(0, ask);
  const std::uint64_t value = co_await rt.read(there + 5);
  EXPECT_EQ(value, 1000u * next + 5);
  co_await rt.barrier();
  co_await rt.write(there + 7, std::uint64_t{42} + rt.self());
  co_await rt.barrier();
  EXPECT_EQ(mine[7], 42u + (rt.self() + rt.size() - 1) % rt.size());
  std::vector<std::uint64_t> copy(1000);
  co_await rt.read_array(there, std::span(copy));
  EXPECT_EQ(copy[999], 1000u * next + 999);
  co_await rt.barrier();
}

TEST(Mttl, GlobalPointersAccessMemoryOfOwner) {
  run_job(3, move_memory);
}

Task<int> error_of(Task<void> task) {
  try {
    co_await task;
  } catch (const pm::Error& error) {
    co_return error.code();
  }
  co_return PM_SUCCESS;
}

Task<void> make(Runtime& rt, std::uint32_t rank, std::uint64_t count) {
  co_await rt.remote_new<std::uint64_t>(rank, count);
}

Task<void> make_and_free(Runtime& rt) {
  const std::uint32_t next = (rt.self() + 1) % rt.size();
  const auto first = co_await rt.remote_new<std::uint64_t>(next, 100);
  const auto other = co_await rt.remote_new<std::uint64_t>(next, 100);
  EXPECT_EQ(co_await rt.read(first + 99), 0u);
  co_await rt.write(first + 99, std::uint64_t{7});
  EXPECT_EQ(co_await rt.read(first + 99), 7u);
  EXPECT_EQ(co_await rt.read(other + 99), 0u);
  // A rank other than the one that made the memory may free it.
  auto free_it = [first](Runtime& there) { return there.remote_delete(first); };
  co_await rt.invoke((rt.self() + 2) % rt.size(), free_it);
  EXPECT_EQ(co_await error_of(rt.remote_delete(first)), PM_EINVAL);
  EXPECT_EQ(co_await error_of(rt.remote_delete(other + 1)), PM_EINVAL);
  co_await rt.remote_delete(other);
}

TEST(Mttl, RemoteMemoryIsZeroAndFreedOnce) {
  for (const std::uint32_t size : {1u, 3u}) run_job(size, make_and_free);
}

Task<void> make_the_impossible(Runtime& rt) {
  EXPECT_EQ(co_await error_of(make(rt, rt.size(), 1)), PM_EINVAL);
  EXPECT_EQ(co_await error_of(make(rt, 0, 0)), PM_EINVAL);
  EXPECT_EQ(co_await error_of(make(rt, 0, ~std::uint64_t{0})), PM_EINVAL);
  GlobalPtr<int> nowhere;
  nowhere.rank = rt.size();
  EXPECT_EQ(co_await error_of(rt.remote_delete(nowhere)), PM_EINVAL);
}

TEST(Mttl, ImpossibleAllocationIsRefused) {
  run_job(2, make_the_impossible);
}

// This makes far more registrations than PM has entries, one after the other.
Task<void> make_often(Runtime& rt) {
  for (int i = 0; i < 5000; ++i) {
    const auto made = co_await rt.remote_new<int>(rt.size() - 1, 10);
    co_await rt.remote_delete(made);
  }
}

TEST(Mttl, FreedMemoryReleasesItsEntry) {
  run_job(2, make_often);
}

// Coroutines act as MPC++'s threads: many run on a different rank and end in any order.
Task<int> wait_turns(Runtime& rt, int turns) {
  for (int i = 0; i < turns; ++i) co_await rt.yield();
  co_return turns;
}

Task<void> fork_and_join(Runtime& rt) {
  std::vector<mttl::Future<int>> threads;
  for (int turns = 50; turns > 0; --turns) {
    auto thread = [turns](Runtime& there) { return wait_turns(there, turns); };
    threads.push_back(rt.invoke((rt.self() + 1) % rt.size(), thread));
  }
  int sum = 0;
  for (auto& thread : threads) sum += co_await thread;
  EXPECT_EQ(sum, 50 * 51 / 2);
}

TEST(Mttl, ManyRemoteThreadsAreJoined) {
  run_job(2, fork_and_join);
}

Task<void> flood(Runtime& rt) {
  static std::atomic<int> counts[4];
  if (rt.self() == 0) {
    for (auto& c : counts) c = 0;
  }
  co_await rt.barrier();
  // The posts are far more than all buffers hold, in all directions at once.
  for (int i = 0; i < 3000; ++i) {
    for (std::uint32_t rank = 0; rank < rt.size(); ++rank) {
      rt.post(rank, [](Runtime& there) { ++counts[there.self()]; });
    }
    if (i % 100 == 0) co_await rt.yield();
  }
  co_await rt.barrier();  // comes after the posts: messages of a pair keep their order
  const int n = static_cast<int>(rt.size());
  const int least = co_await rt.all_reduce(0, [](int a, int b) { return a + b; });
  EXPECT_EQ(least, 0);
  EXPECT_GE(counts[rt.self()].load(), 3000);
  co_await rt.barrier();
  EXPECT_LE(counts[rt.self()].load(), 3000 * n);
}

TEST(Mttl, FloodInAllDirectionsDoesNotDeadlock) {
  run_job(3, flood);
}

Task<void> produce(mttl::Sync<int>& queue, Runtime& rt) {
  for (int i = 0; i < 100; ++i) {
    queue.put(i);
    if (i % 7 == 0) co_await rt.yield();
  }
}

Task<void> consume(Runtime& rt) {
  mttl::Sync<int> queue;
  rt.spawn(produce(queue, rt));
  for (int i = 0; i < 100; ++i) {
    const int value = co_await queue.get();
    EXPECT_EQ(value, i);
  }
}

TEST(Mttl, SynchronisationVariableKeepsOrder) {
  run_job(1, consume);
}

Task<void> fail(Runtime& rt) {
  co_await rt.barrier();
  throw std::runtime_error("on purpose");
}

TEST(Mttl, ExceptionOfProgramLeavesRun) {
  run_job(1, [](Runtime& rt) -> Task<void> {
    bool thrown = false;
    try {
      co_await fail(rt);
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  });
}

Task<void> read_one(Runtime& rt, GlobalPtr<std::uint64_t> from, std::uint64_t& sum) {
  sum += co_await rt.read(from);
}

// This reads more at once than PM has entries for operations.
Task<void> read_many(Runtime& rt) {
  constexpr std::uint64_t kReads = 200;
  std::vector<std::uint64_t> numbers(kReads);
  std::iota(numbers.begin(), numbers.end(), 1);
  const pm::Region region = rt.share(std::as_writable_bytes(std::span(numbers)));
  const auto own = rt.global<std::uint64_t>(region);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kReads; ++i) {
    rt.spawn(read_one(rt, own + static_cast<std::int64_t>(i), sum));
  }
  while (sum < kReads * (kReads + 1) / 2) co_await rt.yield();
  EXPECT_EQ(sum, kReads * (kReads + 1) / 2);
}

TEST(Mttl, ReadsBeyondOperationLimitWaitAndEnd) {
  run_job(2, read_many);
}

}  // namespace
