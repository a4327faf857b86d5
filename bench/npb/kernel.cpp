#include "bench/npb/kernel.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

namespace score::npb {

namespace {

constexpr Rank kMaxRanks = 64;

}  // namespace

std::unique_ptr<Kernel> make_kernel(std::string_view name, char size, Communicator& network) {
  if (network.size() > kMaxRanks) return nullptr;
  if (name == "bt") return make_bt(size, network);
  if (name == "lu") return make_lu(size, network);
  if (name == "sp") return make_sp(size, network);
  if (!std::has_single_bit(network.size())) return nullptr;
  if (name == "ep") return make_ep(size, network);
  if (name == "cg") return make_cg(size, network);
  if (name == "ft") return make_ft(size, network);
  if (name == "is") return make_is(size, network);
  if (name == "mg") return make_mg(size, network);
  return nullptr;
}

bool is_close(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::abs(expected);  // false for NaN
}

std::string compared(std::string_view name, double value, double expected) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "%.*s %.13g (%.13g)", static_cast<int>(name.size()),
                name.data(), value, expected);
  return text.data();
}

}  // namespace score::npb
