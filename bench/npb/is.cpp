// Implements IS: it ranks integer keys by a distributed bucket sort. All keys of a bucket go to one
// rank, which counts them. Every iteration changes two keys, and the ranks of five keys are
// published.
#include "bench/npb/kernel.hpp"
#include "bench/npb/random.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

namespace score::npb {

namespace {

using Key = std::int32_t;

constexpr std::int64_t kIterations = 10;
constexpr std::size_t kTests = 5;

struct Problem {
  char size;
  std::uint32_t log_keys, log_largest, log_buckets;
  std::array<std::size_t, kTests> index;  // positions of the tested keys
  std::array<std::int64_t, kTests> rank;  // published, before the iteration's own shift

  [[nodiscard]] std::int64_t expected(std::size_t test, std::int64_t iteration) const {
    switch (size) {
      case 'S':
        return rank[test] + (test <= 2 ? iteration : -iteration);
      case 'W':
        return rank[test] + (test < 2 ? iteration - 2 : -iteration);
      default:
        return rank[test] + (test <= 2 ? iteration - 1 : 1 - iteration);
    }
  }
};

std::optional<Problem> is_problem_of(char size) {
  switch (size) {
    case 'S':
      return Problem{
          'S', 16, 11, 9, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}};
    case 'W':
      return Problem{'W',
                     20,
                     16,
                     10,
                     {357773, 934767, 875723, 898999, 404505},
                     {1249, 11698, 1039987, 1043896, 1048018}};
    case 'A':
      return Problem{'A',
                     23,
                     19,
                     10,
                     {2112377, 662041, 5336171, 3642833, 4250760},
                     {104, 17523, 123928, 8288932, 8388264}};
    default:
      return std::nullopt;
  }
}

class Is final : public Kernel {
 public:
  Is(const Problem& problem, Communicator& network)
      : p_(problem),
        network_(network),
        shift_(p_.log_largest - p_.log_buckets),
        keys_((std::size_t{1} << p_.log_keys) / network.size()),
        grouped_(keys_.size()) {}

  void prepare() override {
    Random random(Random::kSeed, 4 * keys_.size() * network_.rank());
    const double quarter = static_cast<double>(largest()) / 4;
    for (Key& key : keys_) {
      double sum = random.next();
      for (int i = 0; i < 3; ++i) sum += random.next();
      key = static_cast<Key>(quarter * sum);
    }
    wrong_ = 0;
  }

  void run(Meter& meter) override {
    for (std::int64_t iteration = 1; iteration <= kIterations; ++iteration) {
      if (network_.rank() == 0) {
        const auto i = static_cast<std::size_t>(iteration);
        keys_[i] = static_cast<Key>(iteration);
        keys_[i + kIterations] = static_cast<Key>(largest() - iteration);
      }
      rank_keys(iteration);
      meter.tick();
    }
  }

  Verdict verify() override {
    std::vector<std::int64_t> seen(2 * network_.size() + 2);  // smallest and largest of each rank
    const auto [low, high] = std::minmax_element(mine_.begin(), mine_.end());
    seen[2 * network_.rank()] = mine_.empty() ? -1 : *low;
    seen[2 * network_.rank() + 1] = mine_.empty() ? -1 : *high;
    seen[2 * network_.size()] = static_cast<std::int64_t>(mine_.size());  // their number
    seen[2 * network_.size() + 1] = wrong_ + count_unsorted();            // and errors
    network_.sum(seen);
    const std::int64_t faults = seen.back();
    const std::int64_t number = seen[2 * network_.size()];
    seen.resize(2 * network_.size());
    std::erase(seen, -1);
    const bool in_order = std::is_sorted(seen.begin(), seen.end());
    const bool is_right = faults == 0 && in_order && number == std::int64_t{1} << p_.log_keys;
    return {is_right, std::to_string(faults) + " of " + std::to_string(kTests * kIterations) +
                          " tested ranks and of all sorted keys wrong, " + std::to_string(number) +
                          " keys" + (in_order ? "" : ", ranks not in order")};
  }

 private:
  [[nodiscard]] std::int64_t largest() const { return std::int64_t{1} << p_.log_largest; }

  [[nodiscard]] std::size_t bucket_of(Key key) const {
    return static_cast<std::size_t>(key) >> shift_;
  }

  void rank_keys(std::int64_t iteration) {
    const std::size_t buckets = std::size_t{1} << p_.log_buckets;
    std::vector<std::int64_t> totals(buckets + kTests);  // keys per bucket; values of tested keys
    for (const Key key : keys_) ++totals[bucket_of(key)];
    const std::vector<std::int64_t> own(totals.begin(), totals.begin() + std::ptrdiff_t(buckets));
    for (std::size_t t = 0; t < kTests; ++t) {
      const std::size_t index = p_.index[t];
      if (index / keys_.size() == network_.rank())
        totals[buckets + t] = keys_[index % keys_.size()];
    }
    group(own);
    network_.sum(totals);
    const std::vector<std::size_t> owners = deal_out(std::span(totals).first(buckets));
    send_to_owners(own, owners);
    count(std::span(totals).first(buckets), owners);
    for (std::size_t t = 0; t < kTests; ++t) {
      const auto key = static_cast<Key>(totals[buckets + t]);
      if (owners[bucket_of(key)] != network_.rank()) continue;
      if (lesser_[static_cast<std::size_t>(key - first_)] != p_.expected(t, iteration)) ++wrong_;
    }
  }

  // Copies keys_ by bucket into grouped_.
  void group(const std::vector<std::int64_t>& own) {
    std::vector<std::size_t> place(own.size());
    for (std::size_t b = 1; b < own.size(); ++b) {
      place[b] = place[b - 1] + static_cast<std::size_t>(own[b - 1]);
    }
    for (const Key key : keys_) grouped_[place[bucket_of(key)]++] = key;
  }

  // Returns [bucket] -> rank. Neighbouring buckets stay together, and all ranks get about the same
  // number of keys.
  [[nodiscard]] std::vector<std::size_t> deal_out(std::span<const std::int64_t> totals) const {
    std::vector<std::size_t> owners(totals.size());
    std::size_t rank = 0;
    std::size_t sum = 0;
    for (std::size_t b = 0; b < totals.size(); ++b) {
      owners[b] = rank;
      sum += static_cast<std::size_t>(totals[b]);
      while (rank + 1 < network_.size() && sum >= (rank + 1) * keys_.size()) ++rank;
    }
    return owners;
  }

  void send_to_owners(const std::vector<std::int64_t>& own,
                      const std::vector<std::size_t>& owners) {
    const std::size_t ranks = network_.size();
    std::vector<std::size_t> out(ranks);
    std::vector<std::size_t> in(ranks);
    for (std::size_t b = 0; b < own.size(); ++b) {
      out[owners[b]] += static_cast<std::size_t>(own[b]) * sizeof(Key);
    }
    const std::vector<std::size_t> word(ranks, sizeof(std::size_t));
    network_.all_to_all(std::as_bytes(std::span(out)), word, std::as_writable_bytes(std::span(in)),
                        word);
    mine_.resize(std::accumulate(in.begin(), in.end(), std::size_t{0}) / sizeof(Key));
    network_.all_to_all(std::as_bytes(std::span(grouped_)), out,
                        std::as_writable_bytes(std::span(mine_)), in);
  }

  // Sets lesser_: for every key of the own range, how many keys of all ranks are smaller.
  void count(std::span<const std::int64_t> totals, const std::vector<std::size_t>& owners) {
    const auto range = std::equal_range(owners.begin(), owners.end(), network_.rank());
    const auto begin = static_cast<std::size_t>(range.first - owners.begin());
    const auto end = static_cast<std::size_t>(range.second - owners.begin());
    first_ = static_cast<Key>(begin << shift_);
    lesser_.assign(((end - begin) << shift_) + 1, 0);
    for (const Key key : mine_) ++lesser_[static_cast<std::size_t>(key - first_) + 1];
    lesser_[0] =
        std::accumulate(totals.begin(), totals.begin() + std::ptrdiff_t(begin), std::int64_t{0});
    std::partial_sum(lesser_.begin(), lesser_.end(), lesser_.begin());
  }

  // Places the own keys by their ranks and returns the number of errors in their order.
  std::int64_t count_unsorted() const {
    std::vector<std::int64_t> next = lesser_;
    std::vector<Key> sorted(mine_.size(), -1);
    std::int64_t faults = 0;
    for (const Key key : mine_) {
      const auto place = static_cast<std::size_t>(next[static_cast<std::size_t>(key - first_)]++ -
                                                  lesser_.front());
      if (place < sorted.size()) {
        sorted[place] = key;
      } else {
        ++faults;
      }
    }
    for (std::size_t i = 1; i < sorted.size(); ++i) faults += sorted[i - 1] > sorted[i] ? 1 : 0;
    return faults + (sorted.empty() || sorted.front() >= 0 ? 0 : 1);
  }

  Problem p_;
  Communicator& network_;
  std::uint32_t shift_;  // from a key to its bucket
  std::vector<Key> keys_, grouped_;
  std::vector<Key> mine_;  // keys of the own buckets, from all ranks
  Key first_ = 0;          // smallest key of the own buckets
  std::vector<std::int64_t> lesser_;
  std::int64_t wrong_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_is(char size, Communicator& network) {
  const auto problem = is_problem_of(size);
  return problem ? std::make_unique<Is>(*problem, network) : nullptr;
}

}  // namespace score::npb
