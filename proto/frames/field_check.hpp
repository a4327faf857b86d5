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
  explicit FieldCheck(std::string_view message) : name_(message) {}

  // Checks the message that is the field `field` of another one. Its failure is one of `outer`.
  FieldCheck(FieldCheck& outer, std::string_view field) : name_(field), outer_(&outer) {}

  template <std::integral T, std::integral Low, std::integral High>
  void within(std::string_view field, T value, Low low, High high) {
    if (std::cmp_greater_equal(value, low) && std::cmp_less_equal(value, high)) return;
    if (ok()) fail(field, fmt::format("is {}, must be {} ... {}", value, low, high));
  }

  template <std::integral T, std::integral Low>
  void at_least(std::string_view field, T value, Low low) {
    if (std::cmp_greater_equal(value, low) || !ok()) return;
    fail(field, low == 0 ? "is negative" : fmt::format("is {}, must be at least {}", value, low));
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
    if (!base::is_host_name(text) && ok()) {
      fail(field, fmt::format("'{}' is not a node name", base::escape_terminal(text, 80)));
    }
  }

  void name_or_empty(std::string_view field, std::string_view text) {
    require(field, text.empty() || base::is_host_name(text), "is no name");
  }

  void require(std::string_view field, bool holds, std::string_view otherwise) {
    if (!holds) fail(field, otherwise);
  }

  [[nodiscard]] bool ok() const { return outer_ != nullptr ? outer_->ok() : !error_; }

  // Requires !ok(), and that this is the check of the outermost message, as does result().
  [[nodiscard]] const base::Error& error() const { return *error_; }

  [[nodiscard]] base::Result<void> result() const {
    if (error_) return *error_;
    return {};
  }

 private:
  void fail(std::string_view field, std::string_view what) {
    if (outer_ != nullptr) return outer_->fail(fmt::format("{}.{}", name_, field), what);
    if (!error_) error_ = base::fail(WireErrc::BadMessage, "{}.{} {}", name_, field, what);
  }

  std::string_view name_;
  FieldCheck* outer_ = nullptr;
  std::optional<base::Error> error_;
};

}  // namespace score::proto
