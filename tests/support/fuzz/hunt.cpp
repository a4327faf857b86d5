// A branch is known by the addresses of two instrumented blocks that ran one after the other,
// folded to an index of a table, as in AFL. Mutations are those that find most in messages of fixed
// length: bits, bytes, limits of numbers, cuts, copies, and parts of other inputs.
#include "tests/support/fuzz/hunt.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kBranches = 1U << 16U;
constexpr std::size_t kMostBytes = 16 * 1024;

std::array<std::uint8_t, kBranches> g_seen{};
std::uintptr_t g_last = 0;
bool g_is_new = false;
const score::fuzz::Bytes* g_input = nullptr;

// This may run at any instruction, so it only calls write(2).
void print_input(int signal) {
  constexpr const char* kDigits = "0123456789abcdef";
  [[maybe_unused]] ssize_t sent = write(STDERR_FILENO, "input: ", 7);
  for (std::size_t i = 0; g_input != nullptr && i < g_input->size(); ++i) {
    const char digits[] = {kDigits[(*g_input)[i] >> 4U], kDigits[(*g_input)[i] & 15U]};
    sent = write(STDERR_FILENO, digits, sizeof digits);
  }
  sent = write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

// The compiler inserts calls of this function into a target.
extern "C" void __sanitizer_cov_trace_pc() {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  std::uint8_t& seen = g_seen[(here ^ g_last) % kBranches];
  g_is_new = g_is_new || seen == 0;
  seen = 1;
  g_last = here >> 1U;
}

namespace score::fuzz {

namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

// Overwrites a number of 1, 2, 4 or 8 bytes by one at a limit.
void set_number(Bytes& input, Random& random) {
  const std::size_t width = std::size_t{1} << below(random, 4);
  if (input.size() < width) return;
  const std::array<std::uint64_t, 8> limits{
      0, 1, 2, 127, 128, 255, UINT64_MAX, std::uint64_t{1} << (8 * width - 1)};
  const std::uint64_t value = limits.at(below(random, limits.size())) + below(random, 3) - 1;
  const std::size_t place = below(random, input.size() - width + 1);
  for (std::size_t i = 0; i < width; ++i) {
    input[place + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

void insert_part(Bytes& input, const Bytes& source, Random& random) {
  const std::size_t from = below(random, source.size());
  const std::size_t count = below(random, std::min<std::size_t>(source.size() - from, 64) + 1);
  const auto begin = source.begin() + static_cast<std::ptrdiff_t>(from);
  const Bytes part(begin, begin + static_cast<std::ptrdiff_t>(count));
  const auto place = static_cast<std::ptrdiff_t>(below(random, input.size() + 1));
  input.insert(input.begin() + place, part.begin(), part.end());
}

void erase_part(Bytes& input, Random& random) {
  const std::size_t from = below(random, input.size());
  const std::size_t count = below(random, std::min<std::size_t>(input.size() - from, 64) + 1);
  const auto begin = input.begin() + static_cast<std::ptrdiff_t>(from);
  input.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void mutate(Bytes& input, const Bytes& other, Random& random) {
  switch (below(random, 7)) {
    case 0:
      if (!input.empty()) {
        input[below(random, input.size())] ^= static_cast<std::uint8_t>(1U << below(random, 8));
      }
      break;
    case 1:
      if (!input.empty()) input[below(random, input.size())] = static_cast<std::uint8_t>(random());
      break;
    case 2:
    case 3:
      set_number(input, random);
      break;
    case 4:
      insert_part(input, other, random);
      break;
    case 5:
      insert_part(input, Bytes(input), random);
      break;
    default:
      erase_part(input, random);
  }
  input.resize(std::min(input.size(), kMostBytes));
}

}  // namespace

void run(const Bytes& input) {
  const Bytes exact(input.begin(), input.end());
  g_input = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  g_input = nullptr;
}

void hunt(std::vector<Bytes> corpus, const HuntOptions& options) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, print_input);
  }
  std::printf("hunting for %u s with --seed %u\n", options.seconds, options.seed);
  std::fflush(stdout);
  Random random(options.seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  const std::size_t first = corpus.size();
  std::uint64_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    Bytes input = corpus[below(random, corpus.size())];
    const std::size_t times = 1 + below(random, 6);
    for (std::size_t i = 0; i < times; ++i) {
      mutate(input, corpus[below(random, corpus.size())], random);
    }
    g_is_new = false;
    run(input);
    if (g_is_new) corpus.push_back(std::move(input));
  }
  std::printf("%llu inputs run, %zu reached something new\n", static_cast<unsigned long long>(runs),
              corpus.size() - first);
}

}  // namespace score::fuzz
