// This program runs a fuzz target over saved inputs without libFuzzer, and over mutations of them:
// every prefix of the short ones and a few thousand bit flips from a fixed seed. So the ordinary
// compiler and its sanitizers see the same code paths on every run of the tests.
//
//   fuzz_NAME_replay [--seconds N [--seed N]] DIRECTORY [FILE...]
//
// With --seconds it then hunts for that long: it mutates inputs, and keeps those that reach a new
// branch of a target that is compiled with -fsanitize-coverage=trace-pc. An input that ends the
// program is printed in hexadecimal digits.

#include "tests/support/fuzz/hunt.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace {

using score::fuzz::Bytes;
using score::fuzz::run;

constexpr std::size_t kPrefixesUpTo = 512;  // longer inputs are cut at random
constexpr int kMutationsPerInput = 200;

void run_prefixes(const Bytes& input) {
  if (input.size() > kPrefixesUpTo) return;
  for (std::size_t size = 0; size < input.size(); ++size) {
    run(Bytes(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

void run_mutations(const Bytes& input, std::mt19937& random) {
  if (input.empty()) return;
  for (int i = 0; i < kMutationsPerInput; ++i) {
    Bytes mutated = input;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int flip = 0; flip < flips; ++flip) {
      mutated[random() % mutated.size()] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    }
    if (random() % 4 == 0) mutated.resize(random() % mutated.size());
    run(mutated);
  }
}

bool replay_file(const std::filesystem::path& path, std::mt19937& random,
                 std::vector<Bytes>& corpus) {
  std::ifstream file(path, std::ios::binary);
  const Bytes input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  run(input);
  run_prefixes(input);
  run_mutations(input, random);
  corpus.push_back(input);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(1);
  std::vector<Bytes> corpus;
  score::fuzz::HuntOptions hunt{0, std::random_device{}()};
  bool is_sound = true;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path(argv[i]);
    const bool is_option = path.string().starts_with("--") && i + 1 < argc;
    if (is_option) {
      const auto value = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
      (std::strcmp(argv[i++], "--seed") == 0 ? hunt.seed : hunt.seconds) = value;
    } else if (!std::filesystem::is_directory(path)) {
      is_sound = replay_file(path, random, corpus) && is_sound;
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(path)) {
        if (entry.is_regular_file()) is_sound = replay_file(entry, random, corpus) && is_sound;
      }
    }
  }
  std::printf("%zu inputs replayed\n", corpus.size());
  if (!is_sound || corpus.empty()) return 1;
  if (hunt.seconds > 0) score::fuzz::hunt(std::move(corpus), hunt);
  return 0;
}
