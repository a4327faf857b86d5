// This program runs a fuzz target over saved inputs without libFuzzer, and over mutations of them:
// every prefix of the short ones and a few thousand bit flips from a fixed seed. So the ordinary
// compiler and its sanitizers see the same code paths on every run of the tests.
//
//   fuzz_NAME_replay DIRECTORY [FILE...]

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kPrefixesUpTo = 512;  // longer inputs are cut at random
constexpr int kMutationsPerInput = 200;

// Copies the input to a heap block of exactly its size, so that the sanitizer detects a read beyond
// the end.
void run(const Bytes& input) {
  const Bytes exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

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

bool replay_file(const std::filesystem::path& path, std::mt19937& random) {
  std::ifstream file(path, std::ios::binary);
  const Bytes input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  run(input);
  run_prefixes(input);
  run_mutations(input, random);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(1);
  std::size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path path(argv[i]);
    if (!std::filesystem::is_directory(path)) {
      inputs += replay_file(path, random) ? 1 : 0;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      inputs += entry.is_regular_file() && replay_file(entry.path(), random) ? 1 : 0;
    }
  }
  std::printf("%zu inputs replayed\n", inputs);
  return inputs > 0 ? 0 : 1;
}
