// Tests a set of generated conversions with random messages. A test includes SET_values.inc before
// this header. It includes SET_values_test.inc after it, and after its functions make_valid() for
// the messages with Value.check.
#pragma once

#include "proto/convert/checks.hpp"
#include "proto/convert/fields.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

namespace score::proto {

class Random {
 public:
  // Wild messages break the rules now and then.
  explicit Random(bool is_wild = false) : is_wild_(is_wild) {}

  [[nodiscard]] bool is_wild() const { return is_wild_; }

  bool one_in(unsigned cases) { return engine_() % cases == 0; }

  template <class T>
  T number(auto least, auto most) {
    if constexpr (std::floating_point<T>) {
      return T(engine_()) / T(4);
    } else {
      constexpr T kLowest = std::numeric_limits<T>::min(), kHighest = std::numeric_limits<T>::max();
      if (is_wild_ && one_in(8)) return number_between<T>(kLowest, kHighest);
      if (one_in(8)) return static_cast<T>(most);
      return number_between<T>(static_cast<T>(least), static_cast<T>(most));
    }
  }

  std::string text(bool is_name, std::size_t most) {
    const bool breaks_rule = is_wild_ && one_in(8);
    if (is_name && !breaks_rule) return "n" + std::to_string(engine_() % 1000);
    std::string bytes(
        breaks_rule ? engine_() % 3000 : engine_() % (std::min<std::size_t>(most, 200) + 1), ' ');
    for (char& byte : bytes) byte = static_cast<char>(engine_());
    return bytes;
  }

  // Returns the length of a list.
  std::size_t count(std::size_t limit) {
    if (is_wild_ && limit <= 1'000 && one_in(50)) return limit + 1;
    return engine_() % (std::min<std::size_t>(limit, 4) + 1);
  }

 private:
  template <class T>
  T number_between(T least, T most) {
    if constexpr (std::is_same_v<T, bool>) {
      return one_in(2);
    } else {
      return std::uniform_int_distribution<T>(least, most)(engine_);
    }
  }

  std::mt19937_64 engine_{1};  // NOLINT(cert-msc51-cpp): the same messages each time
  bool is_wild_;
};

// The value of a valid message gives the same message, byte for byte.
template <class Message>
void expect_round_trips() {
  Random random;
  for (int i = 0; i < 300; ++i) {
    Message sent;
    randomize(random, sent);
    const auto value = from_wire(sent);
    ASSERT_TRUE(value.has_value()) << value.error().message();
    const Message again = to_wire(*value);
    ASSERT_EQ(again.SerializeAsString(), sent.SerializeAsString());
    if constexpr (std::equality_comparable<std::remove_cvref_t<decltype(*value)>>) {
      EXPECT_EQ(*from_wire(again), *value);
    }
  }
}

// Overwrites some bytes of the message. It then has other contents, or is half empty.
template <class Message>
void spoil(Random& random, Message& message) {
  std::string bytes = message.SerializeAsString();
  for (char& byte : bytes) {
    if (random.one_in(20)) byte = random.number<char>(0, 127);
  }
  static_cast<void>(message.ParseFromString(bytes));
}

// Any message gives an error that names the message, or a value that survives.
template <class Message>
void expect_value_or_error() {
  Random random(true);
  for (int i = 0; i < 3'000; ++i) {
    Message sent;
    randomize(random, sent);
    if (random.one_in(2)) spoil(random, sent);
    const auto value = from_wire(sent);
    if (value) {
      if constexpr (requires { to_wire(*value); }) {
        const Message once = to_wire(*value);
        const auto again = from_wire(once);
        ASSERT_TRUE(again.has_value()) << again.error().message();
        EXPECT_EQ(to_wire(*again).SerializeAsString(), once.SerializeAsString());
      }
    } else {
      const std::string& line = value.error().context();
      const std::string type = sent.GetTypeName();
      const std::string name = type.substr(type.rfind('.') + 1);
      EXPECT_TRUE(value.error().is(WireErrc::BadMessage));
      EXPECT_TRUE(line.starts_with(name + ".")) << line;
      EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
    }
  }
}

}  // namespace score::proto
