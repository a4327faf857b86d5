// Implements scbench-mttl COUNT: measures operations of MTTL, and the same operations without MTTL.
// Rank 0 times them, rank 1 serves. It prints one JSON object per line: what, us.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pm/mttl.hpp>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kMost = 1'000'000;
constexpr std::uint64_t kLarge = 1 << 20;

unsigned count = 0;

void report(const char* what, Clock::time_point start) {
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  std::printf("{\"what\":\"%s\",\"us\":%.4f}\n", what, us / count);
  std::fflush(stdout);
}

mttl::Task<int> remote_thread(mttl::Runtime& there) {
  co_await there.yield();
  co_return 1;
}

mttl::Task<void> local_thread(mttl::Runtime& rt, mttl::Sync<int>& done) {
  co_await rt.yield();
  done.put(1);
}

mttl::Task<void> time_calls(mttl::Runtime& rt) {
  Clock::time_point start = Clock::now();
  const auto function = [](mttl::Runtime&) { return 1; };
  for (unsigned i = 0; i < count; ++i) co_await rt.invoke(1, function);
  report("call", start);
  start = Clock::now();
  const auto thread = [](mttl::Runtime& there) { return remote_thread(there); };
  for (unsigned i = 0; i < count; ++i) co_await rt.invoke(1, thread);
  report("thread", start);
  start = Clock::now();
  mttl::Sync<int> done;
  for (unsigned i = 0; i < count; ++i) {
    rt.spawn(local_thread(rt, done));
    co_await done.get();
  }
  report("own thread", start);
}

mttl::Task<void> time_memory(mttl::Runtime& rt) {
  for (const std::uint64_t bytes : {std::uint64_t{64}, kLarge}) {
    const Clock::time_point start = Clock::now();
    for (unsigned i = 0; i < count; ++i) {
      const auto made = co_await rt.remote_new<std::byte>(1, bytes);
      co_await rt.remote_delete(made);
    }
    report(bytes == kLarge ? "new 1 MB" : "new 64 B", start);
  }
  const auto word = co_await rt.remote_new<std::uint64_t>(1);
  Clock::time_point start = Clock::now();
  for (unsigned i = 0; i < count; ++i) co_await rt.write(word, std::uint64_t{i});
  report("write", start);
  start = Clock::now();
  for (unsigned i = 0; i < count; ++i) co_await rt.read(word);
  report("read", start);
  co_await rt.remote_delete(word);
}

// Measures the same operations without MTTL, inside this process.
void time_own() {
  Clock::time_point start = Clock::now();
  for (unsigned i = 0; i < count; ++i) std::thread([] {}).join();
  report("kernel's thread", start);
  start = Clock::now();
  std::size_t sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += std::vector<std::byte>(kLarge).size();
  report("own new 1 MB", start);
  if (sum != kLarge * count) std::abort();
}

mttl::Task<void> program(mttl::Runtime& rt) {
  co_await rt.barrier();
  if (rt.self() != 0) co_return;
  co_await time_calls(rt);
  co_await time_memory(rt);
  time_own();
}

}  // namespace

int main(int argc, char** argv) {
  char* end = nullptr;
  const unsigned long asked = argc == 2 ? std::strtoul(argv[1], &end, 10) : 0;
  if (asked == 0 || asked > kMost || *end != '\0') {
    std::fprintf(stderr, "usage: scbench-mttl COUNT, from 1 to %u\n", kMost);
    return 2;
  }
  count = static_cast<unsigned>(asked);
  try {
    pm::Context context;
    if (context.size() < 2) throw std::runtime_error("scbench-mttl needs two ranks");
    mttl::Runtime rt(context);
    rt.run(program(rt));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scbench-mttl: %s\n", error.what());
    return 1;
  }
  return 0;
}
