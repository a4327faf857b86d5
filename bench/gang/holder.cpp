// scbench-holder COUNTERS MIB is a job with memory of its own, for scbench gang --memory. Each rank
// fills MIB mebibytes with random numbers, which no swap compresses, then changes all of them again
// and again, and counts the mebibytes in the file COUNTERS.RANK: 8 bytes, little endian. It prints
// "started" at its start.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
constexpr std::size_t kWords = kMebibyte / sizeof(std::uint64_t);

std::uint64_t next(std::uint64_t& state) {
  state ^= state << 13U;
  state ^= state >> 7U;
  state ^= state << 17U;
  return state;
}

volatile std::uint64_t* open_counter(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(std::uint64_t)) != 0) return nullptr;
  void* const mapped =
      mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<volatile std::uint64_t*>(mapped);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t size = 0;
  const std::string_view text = argc == 3 ? argv[2] : "";
  std::from_chars(text.data(), text.data() + text.size(), size);
  const char* const rank = std::getenv("SCORE_RANK");
  if (size == 0 || rank == nullptr) {
    std::fputs("usage: scbench-holder COUNTERS MIB, started by scrun\n", stderr);
    return 2;
  }
  std::puts("started");
  std::fflush(stdout);
  volatile std::uint64_t* const counter = open_counter(std::string(argv[1]) + "." + rank);
  if (counter == nullptr) {
    std::perror("scbench-holder: cannot make the file of the counter");
    return 1;
  }
  std::uint64_t state = 0x9e3779b97f4a7c15U + std::strtoull(rank, nullptr, 10);
  std::vector<std::uint64_t> memory(size * kWords);
  for (std::uint64_t& word : memory) word = next(state);
  *counter = 0;
  for (;;) {
    for (std::size_t piece = 0; piece < size; ++piece) {
      for (std::size_t i = 0; i < kWords; ++i) {
        std::uint64_t& word = memory[piece * kWords + i];
        word = next(word);
      }
      *counter = *counter + 1;
    }
  }
}
