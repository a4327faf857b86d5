// FieldCheck checks the fields of a message in order and keeps the first fault, so that a
// conversion reads as a list of conditions.
#pragma once

#include "base/limits.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "proto/frames/errc.hpp"

#include <concepts>
#include <optional>
#include <string_view>

namespace score::proto {

// Reasons and similar texts are for people, so they are cut at the limit instead of rejected.
inline std::string cut_reason(const std::string& text) {
  return text.substr(0, base::limits::kMaxErrorTextBytes);
}

class FieldCheck {
 public:
  // `message` must be a literal, because the text of the error contains it.
  explicit FieldCheck(std::string_view message) : message_(message) {}

  template <std::integral T, std::integral Low, std::integral High>
  void within(std::string_view field, T value, Low low, High high) {
    if (std::cmp_greater_equal(value, low) && std::cmp_less_equal(value, high)) return;
    fail(field, fmt::format("is {}, must be {} ... {}", value, low, high));
  }

  void at_most(std::string_view field, std::size_t count, std::size_t limit) {
    if (count > limit) fail(field, fmt::format("has {}, limit {}", count, limit));
  }

  void not_zero(std::string_view field, std::uint64_t value) {
    if (value == 0) fail(field, "is missing");
  }

  // Checks text that becomes a C string later.
  void c_string(std::string_view field, std::string_view text, std::size_t limit) {
    at_most(field, text.size(), limit);
    if (text.find('\0') != std::string_view::npos) fail(field, "has a zero byte");
  }

  void host_name(std::string_view field, std::string_view text) {
    if (!base::is_host_name(text)) {
      fail(field, fmt::format("'{}' is not a node name", base::escape_terminal(text, 80)));
    }
  }

  void require(std::string_view field, bool holds, std::string_view otherwise) {
    if (!holds) fail(field, otherwise);
  }

  // Takes over the failure of a part, if any.
  template <class T>
  void part(std::string_view field, const base::Result<T>& result) {
    if (!result) fail(field, result.error().context());
  }

  [[nodiscard]] bool ok() const { return !error_; }

  // Requires !ok().
  [[nodiscard]] const base::Error& error() const { return *error_; }

  [[nodiscard]] base::Result<void> result() const {
    if (error_) return *error_;
    return {};
  }

 private:
  void fail(std::string_view field, std::string_view what) {
    if (!error_) error_ = base::fail(WireErrc::BadMessage, "{}.{} {}", message_, field, what);
  }

  std::string_view message_;
  std::optional<base::Error> error_;
};

}  // namespace score::proto
