// Implements EP, "embarrassingly parallel": it makes pairs of normal deviates by the polar method,
// and computes their sums and how many lie in each square ring. Batches of 2^16 pairs are
// distributed over the ranks; the network is used once, for the sums.
#include "bench/npb/kernel.hpp"
#include "bench/npb/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace score::npb {

namespace {

constexpr std::uint64_t kSeed = 271'828'183;
constexpr std::uint32_t kBatchPairs = 1U << 16;
constexpr double kTolerance = 1e-8;
constexpr std::size_t kRings = 10;

struct Problem {
  std::uint32_t log_pairs;
  double sum_x, sum_y;  // published
};

std::optional<Problem> problem_of(char size) {
  switch (size) {
    case 'S':
      return Problem{24, -3.247834652034740e+3, -6.958407078382297e+3};
    case 'W':
      return Problem{25, -2.863319731645753e+3, -6.320053679109499e+3};
    case 'A':
      return Problem{28, -4.295875165629892e+3, -1.580732573678431e+4};
    default:
      return std::nullopt;
  }
}

class Ep final : public Kernel {
 public:
  Ep(const Problem& problem, Communicator& network) : problem_(problem), network_(network) {}

  void prepare() override { sums_ = {}; }

  void run(Meter& meter) override {
    const std::uint64_t batches = (std::uint64_t{1} << problem_.log_pairs) / kBatchPairs;
    for (std::uint64_t b = network_.rank(); b < batches; b += network_.size()) {
      add_batch(b);
      meter.tick();
    }
    network_.sum(sums_);
  }

  Verdict verify() override {
    return {is_close(sums_[0], problem_.sum_x, kTolerance) &&
                is_close(sums_[1], problem_.sum_y, kTolerance),
            compared("sum x", sums_[0], problem_.sum_x) + ", " +
                compared("sum y", sums_[1], problem_.sum_y)};
  }

 private:
  void add_batch(std::uint64_t batch) {
    Random random(kSeed, 2 * kBatchPairs * batch);
    for (std::uint32_t i = 0; i < kBatchPairs; ++i) {
      const double x = 2 * random.next() - 1;
      const double y = 2 * random.next() - 1;
      const double t = x * x + y * y;
      if (t > 1) continue;
      const double factor = std::sqrt(-2 * std::log(t) / t);
      const double gauss_x = x * factor;
      const double gauss_y = y * factor;
      sums_[0] += gauss_x;
      sums_[1] += gauss_y;
      const double ring = std::max(std::abs(gauss_x), std::abs(gauss_y));
      sums_[2 + std::min(static_cast<std::size_t>(ring), kRings - 1)] += 1;
    }
  }

  Problem problem_;
  Communicator& network_;
  std::array<double, 2 + kRings> sums_{};  // sum of x, sum of y, and how many lie in each ring
};

}  // namespace

std::unique_ptr<Kernel> make_ep(char size, Communicator& network) {
  const auto problem = problem_of(size);
  return problem ? std::make_unique<Ep>(*problem, network) : nullptr;
}

}  // namespace score::npb
