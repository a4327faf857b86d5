// Connects two halves of libfabric over provider pm, for tests in which they exchange messages.
#pragma once

#include "pmlib/fi/link/link.hpp"
#include "tests/support/pmlib/test_side.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace score::pm::fi {

constexpr std::uint64_t kTimeoutUs = 120'000'000;  // after which a test fails

class Provider : public testing::Test {
 protected:
  Provider() { make({}); }

  void make(const SideOptions& options) {
    a_to_b = b_to_a = FI_ADDR_NOTAVAIL;
    a = std::make_unique<Side>(options);
    b = std::make_unique<Side>(options);
    a_to_b = a->know(b->name());
    b_to_a = b->know(a->name());
  }

  // Makes new sides that reach each other through relays.
  void meet_by_relays(unsigned lost_per_1000) {
    a = std::make_unique<Side>();
    b = std::make_unique<Side>();
    relays.push_back(std::make_unique<Relay>(b->name(), lost_per_1000));
    relays.push_back(std::make_unique<Relay>(a->name(), lost_per_1000));
    a_to_b = a->know(relays[0]->name());
    b_to_a = b->know(relays[1]->name());
  }

  // Runs both sides until `is_done()` and keeps their completions. Returns false after a timeout.
  bool run_until(const std::function<bool()>& is_done) {
    const auto end = Link::now_us() + kTimeoutUs;
    while (!is_done()) {
      take(*a, done_a);
      take(*b, done_b);
      for (auto& relay : relays) relay->forward();
      if (Link::now_us() > end) return false;
    }
    return true;
  }

  void take(Side& side, std::deque<fi_cq_tagged_entry>& done) {
    fi_cq_tagged_entry entry{};
    if (side.poll(entry)) return done.push_back(entry);
    fi_cq_err_entry error{};
    while (fi_cq_readerr(side.cq, &error, 0) == 1) errors.push_back(error);
  }

  // Runs both sides for a short time, for tests that need only some progress.
  void run_a_little() {
    for (int i = 0; i < 2000; ++i) run_until([&, n = 0]() mutable { return n++ > 0; });
  }

  bool send_tagged(const void* bytes, std::size_t length, std::uint64_t tag) {
    ssize_t error = -FI_EAGAIN;
    return run_until([&] {
             error = fi_tsend(a->ep, bytes, length, nullptr, a_to_b, tag, nullptr);
             return error != -FI_EAGAIN;
           }) &&
           error == 0;
  }

  // Sends as send_tagged() does, but makes progress only on side `a`.
  bool send_only(const void* bytes, std::size_t length, std::uint64_t tag) {
    const auto end = Link::now_us() + kTimeoutUs;
    ssize_t error = -FI_EAGAIN;
    while (error == -FI_EAGAIN && Link::now_us() < end) {
      error = fi_tsend(a->ep, bytes, length, nullptr, a_to_b, tag, nullptr);
      fi_cq_tagged_entry entry{};
      fi_cq_read(a->cq, &entry, 1);
    }
    return error == 0;
  }

  std::unique_ptr<Side> a, b;
  fi_addr_t a_to_b = 0, b_to_a = 0;
  std::deque<fi_cq_tagged_entry> done_a, done_b;
  std::vector<fi_cq_err_entry> errors;
  std::vector<std::unique_ptr<Relay>> relays;
};

// Returns bytes that depend on their position and on the seed.
inline std::vector<std::uint8_t> pattern(std::size_t length, unsigned seed) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::uint8_t>((i * 2654435761u >> 8) + seed);
  }
  return bytes;
}

}  // namespace score::pm::fi
