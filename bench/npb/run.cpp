#include "bench/npb/run.hpp"

#include "bench/npb/kernel.hpp"
#include "examples/progress.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace score::npb {

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> stopped{false};

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
}

class NoMeter final : public Meter {
 public:
  void tick() override {}
};

// Counts in the file that `progress` uses too. Every rank creates the same file.
class FileMeter final : public Meter {
 public:
  FileMeter(const std::string& path, Rank rank, Rank size) {
    const std::uint64_t bytes = progress_file_bytes(size);
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void* memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) {
      memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (file >= 0) close(file);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot create or map " + path);
    auto* header = static_cast<progress_header*>(memory);
    header->ranks = size;
    header->ring = kProgressRing;
    header->slot_bytes = sizeof(progress_slot);
    progress_store(&header->magic, kProgressMagic);
    slot_ = progress_slot_of(memory, rank);
    slot_->pid = static_cast<std::uint64_t>(getpid());
    progress_store(&slot_->first_ns, now_ns());
  }

  void tick() override {
    progress_store(&slot_->last_ns, now_ns());
    progress_store(&slot_->counter, ++count_);
  }

 private:
  progress_slot* slot_ = nullptr;
  std::uint64_t count_ = 0;
};

bool read_option(std::string_view name, const char* value, RunOptions& options) {
  if (name == "--counters") {
    options.counters = value;
    return true;
  }
  char* end = nullptr;
  options.seconds = std::strtod(value, &end);
  return name == "--seconds" && *end == '\0' && end != value && options.seconds >= 0;
}

struct Result {
  Verdict verdict;
  double seconds = 0;  // of the timed parts
  int runs = 0;
};

// Returns true on all ranks if `mine` is true on any.
bool any(Communicator& network, bool mine) {
  std::int64_t sum = mine ? 1 : 0;
  network.sum({&sum, 1});
  return sum > 0;
}

Result measure(const RunOptions& options, Kernel& kernel, Meter& meter, Communicator& network) {
  Result result;
  const auto begin = Clock::now();
  const auto is_over = [&] {
    return stopped.load() || Clock::now() - begin >= std::chrono::duration<double>(options.seconds);
  };
  do {
    kernel.prepare();
    network.barrier();
    const auto start = Clock::now();
    kernel.run(meter);
    network.barrier();
    result.seconds += std::chrono::duration<double>(Clock::now() - start).count();
    ++result.runs;
    result.verdict = kernel.verify();
  } while (result.verdict.is_right && !any(network, is_over()));
  return result;
}

}  // namespace

std::optional<RunOptions> parse_options(std::span<char*> arguments) {
  RunOptions options;
  bool is_right = arguments.size() >= 3 && std::string_view(arguments[2]).size() == 1 &&
                  arguments.size() % 2 == 1;
  for (std::size_t i = 3; is_right && i < arguments.size(); i += 2) {
    is_right = read_option(arguments[i], arguments[i + 1], options);
  }
  if (!is_right) {
    std::fprintf(stderr,
                 "usage: %s ep|cg|ft|is|mg|lu|sp|bt S|W|A (cg, mg: also B) [--seconds S] "
                 "[--counters FILE]\n",
                 arguments.empty() ? "npb" : arguments[0]);
    return std::nullopt;
  }
  options.kernel = arguments[1];
  options.size = arguments[2][0];
  return options;
}

int run_kernel(const RunOptions& options, Communicator& network) {
  std::signal(SIGTERM, [](int) { stopped = true; });
  const bool speaks = network.rank() == 0;
  const auto kernel = make_kernel(options.kernel, options.size, network);
  if (!kernel) {
    if (speaks) {
      std::fprintf(
          stderr,
          "%s %c on %u ranks: not supported; use a power of two up to 64 ranks, for sp and "
          "bt a square, for lu any number; lu, sp and bt S fit on 16\n",
          options.kernel.c_str(), options.size, network.size());
    }
    return 125;
  }
  std::unique_ptr<Meter> meter = std::make_unique<NoMeter>();
  if (!options.counters.empty()) {
    meter = std::make_unique<FileMeter>(options.counters, network.rank(), network.size());
  }
  network.count_with(meter.get());
  const Result result = measure(options, *kernel, *meter, network);
  network.count_with(nullptr);
  if (speaks) {
    std::printf("%s %c, %u ranks: %s; %d runs, %.6f s each; %s\n", options.kernel.c_str(),
                options.size, network.size(), result.verdict.is_right ? "verified" : "NOT VERIFIED",
                result.runs, result.seconds / result.runs, result.verdict.detail.c_str());
    std::fflush(stdout);
  }
  return result.verdict.is_right ? 0 : 1;
}

}  // namespace score::npb
