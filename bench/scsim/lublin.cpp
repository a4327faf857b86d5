// A fifth of the jobs is serial; the logarithm of the size of the others has a two-stage uniform
// distribution, mostly rounded to a power of two. Run times: the logarithm has a hyper-gamma
// distribution whose mix depends on the size. Arrivals: the logarithm of the inter-arrival time has
// a gamma distribution. Time passes quickly or slowly by the time of day, whose rush is a gamma
// distribution too (48 half hours, a day that begins at 5:30).
//
// The parameters are the paper's for all jobs together. The paper fitted the mix of run times to
// machines of up to a few hundred processors. On a larger machine the mix is that of the job's
// share.
//
// This file is tested by workload_test.cpp.
#include "bench/scsim/workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace score::scsim {

namespace {

constexpr double kSerial = 0.244;
constexpr double kPowerOfTwo = 0.576;
constexpr double kLow = 0.8;          // log2 of the least parallel size
constexpr double kMediumBelow = 2.5;  // the second stage begins this far below log2 of the machine
constexpr double kFirstStage = 0.86;  // probability
constexpr double kShortAlpha = 4.2, kShortBeta = 0.94;
constexpr double kLongAlpha = 312, kLongBeta = 0.03;
constexpr double kMixSlope = -0.0054, kMixBase = 0.78;
constexpr double kFitted = 256;     // processors
constexpr double kMostLogRun = 12;  // of seconds
constexpr double kRushAlpha = 10.2303, kRushBeta = 0.4871, kRushToDay = 1.0225;
constexpr double kDayAlpha = 8.1737, kDayBeta = 3.9631;
constexpr double kMostLogGap = 13;
constexpr int kBuckets = 48;
constexpr int kDayStart = 11;
constexpr double kBucketSeconds = 1800;

// Computes the regularised lower incomplete gamma function by its series (Abramowitz and Stegun
// 6.5.29).
double gamma_cdf(double x, double alpha, double beta) {
  const double t = x / beta;
  if (t <= 0) return 0;
  double term = 1 / alpha;
  double sum = term;
  for (int n = 1; n < 1000 && term > sum * 1e-15; ++n) {
    term *= t / (alpha + n);
    sum += term;
  }
  return sum * std::exp(-t + alpha * std::log(t) - std::lgamma(alpha));
}

class LublinModel {
 public:
  LublinModel(std::uint32_t nodes, std::uint64_t seed) : nodes_(nodes), random_(seed) {
    double sum = 0;
    for (int i = kDayStart; i < kDayStart + kBuckets; ++i) {
      double& rate = rates_[static_cast<std::size_t>((i - 1) % kBuckets)];
      rate = gamma_cdf(i + 0.5, kDayAlpha, kDayBeta) - gamma_cdf(i - 0.5, kDayAlpha, kDayBeta);
      sum += rate;
    }
    for (double& rate : rates_) rate *= kBuckets / sum;
  }

  SimJob next(std::uint64_t number) {
    SimJob job;
    job.number = number;
    job.submit_s = arrival();
    job.nodes = size();
    job.run_s = run_time(job.nodes);
    return job;
  }

 private:
  double uniform(double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random_);
  }

  double gamma(double alpha, double beta) {
    return std::gamma_distribution<double>(alpha, beta)(random_);
  }

  std::uint32_t size() {
    const double kind = uniform(0, 1);
    if (kind <= kSerial) return 1;
    const double high = std::log2(nodes_);
    const double medium = std::max(kLow, high - kMediumBelow);
    const bool is_first = uniform(0, 1) <= kFirstStage;
    double log = is_first ? uniform(kLow, medium) : uniform(medium, high);
    if (kind <= kSerial + kPowerOfTwo) log = std::round(log);
    return std::clamp(static_cast<std::uint32_t>(std::lround(std::exp2(log))), 1U, nodes_);
  }

  double run_time(std::uint32_t nodes) {
    const double part = nodes * std::min(1.0, kFitted / nodes_);
    const double is_short = std::clamp(kMixSlope * part + kMixBase, 0.0, 1.0);
    double log = kMostLogRun + 1;
    while (log > kMostLogRun) {
      log =
          uniform(0, 1) <= is_short ? gamma(kShortAlpha, kShortBeta) : gamma(kLongAlpha, kLongBeta);
    }
    return std::max(1.0, std::floor(std::exp(log)));
  }

  // Time passes at the rate of the half hour, so many jobs arrive in a rush hour.
  double arrival() {
    double log = kMostLogGap + 1;
    while (log > kMostLogGap) log = gamma(kRushAlpha * kRushToDay, kRushBeta);
    double points = std::exp(log) / kBucketSeconds;
    double left = rates_[bucket_] * (1 - passed_);
    while (points > left) {
      points -= left;
      time_ += kBucketSeconds * (1 - passed_);
      passed_ = 0;
      bucket_ = (bucket_ + 1) % kBuckets;
      left = rates_[bucket_];
    }
    passed_ += points / rates_[bucket_];
    time_ += kBucketSeconds * points / rates_[bucket_];
    return time_;
  }

  std::uint32_t nodes_;
  std::mt19937_64 random_;
  std::array<double, kBuckets> rates_{};  // of arrivals, mean 1
  std::size_t bucket_ = 0;
  double passed_ = 0;  // fraction of the bucket, 0 ... 1
  double time_ = 0;
};

}  // namespace

Workload lublin(std::uint32_t nodes, std::size_t jobs, std::uint64_t seed) {
  Workload out;
  out.name = "lublin";
  out.nodes = nodes;
  LublinModel model(nodes, seed);
  for (std::uint64_t n = 1; n <= jobs; ++n) out.jobs.push_back(model.next(n));
  return out;
}

}  // namespace score::scsim
