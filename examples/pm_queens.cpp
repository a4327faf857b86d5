// Counts the solutions of the n-queens problem with all ranks of a job: pm_queens [N]
//
// Rank 0 keeps a list of openings (the queens of the first two rows). Every rank, including rank 0,
// fetches the next one by a remote invocation until none is left. A reduction adds the counts.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <pm/mttl.hpp>

namespace {

struct Opening {
  std::uint32_t columns, left, right;  // attacked squares of the next row
  bool is_last;                        // no opening: all have been given out
};

unsigned board = 10;
unsigned next_opening = 0;  // on rank 0

// Counts the completions from a row on; bits are columns.
std::uint64_t count(std::uint32_t all, std::uint32_t columns, std::uint32_t left,
                    std::uint32_t right) {
  if (columns == all) return 1;
  std::uint64_t sum = 0;
  for (std::uint32_t free = all & ~(columns | left | right); free != 0; free &= free - 1) {
    const std::uint32_t queen = free & -free;
    sum += count(all, columns | queen, (left | queen) << 1, (right | queen) >> 1);
  }
  return sum;
}

Opening take_opening() {
  while (next_opening < board * board) {
    const std::uint32_t first = 1u << next_opening / board;
    const std::uint32_t second = 1u << next_opening % board;
    ++next_opening;
    if ((second & (first | first << 1 | first >> 1)) != 0) continue;
    const std::uint32_t left = ((first << 1) | second) << 1;
    const std::uint32_t right = ((first >> 1) | second) >> 1;
    return {first | second, left, right, false};
  }
  return {0, 0, 0, true};
}

mttl::Task<void> program(mttl::Runtime& rt) {
  const std::uint32_t all = (1u << board) - 1;
  std::uint64_t mine = 0;
  for (;;) {
    const Opening o = co_await rt.invoke(0, [](mttl::Runtime&) { return take_opening(); });
    if (o.is_last) break;
    mine += count(all, o.columns, o.left, o.right);
    co_await rt.yield();
  }
  const auto sum =
      co_await rt.all_reduce(mine, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  if (rt.self() == 0) {
    std::printf("%u queens on %u ranks: %llu solutions\n", board, rt.size(),
                static_cast<unsigned long long>(sum));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) board = static_cast<unsigned>(std::atoi(argv[1]));
  if (board < 2 || board > 20) {
    std::fprintf(stderr, "usage: pm_queens [N], N from 2 to 20\n");
    return 2;
  }
  try {
    pm::Context context;
    mttl::Runtime rt(context);
    rt.run(program(rt));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pm_queens: %s\n", e.what());
    return 1;
  }
  return 0;
}
