#pragma once
// Result<T> is the result of anything that can fail because of a peer, a user or the kernel.
//
//    Result<Config> load(const std::string& path) {
//      auto text = read_file(path, kMaxConfigBytes);
//      if (!text) return text.error().with_context("cannot load {}", path);
//      ...
//      return fail(Errc::Malformed, "{}:{}: no value for {}", path, line, key);
//      return fail(errno_code(errno), "cannot open {}", path);
//    }
//
// Each caller may add context; the code is never dropped. g++ 12 does not warn when the Result of a
// co_await is dropped, so always bind it.

#include "base/errc.hpp"

#include <fmt/format.h>

#include <concepts>
#include <expected>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace score::inline base {

// An Error has a code for programs and a context for people. It is copyable and cheap to move.
class Error {
 public:
  explicit Error(std::error_code code, std::string context = {})
      : code_(code), context_(std::move(context)) {}

  [[nodiscard]] const std::error_code& code() const { return code_; }

  [[nodiscard]] const std::string& context() const { return context_; }

  // Returns the line for users: "cannot start job 7: cannot exec ./a.out: No such file or
  // directory".
  [[nodiscard]] std::string message() const;

  // Returns the same code with "outer: " before the context.
  template <typename... Args>
  [[nodiscard]] Error with_context(fmt::format_string<Args...> format, Args&&... args) const {
    return wrapped(fmt::format(format, std::forward<Args>(args)...));
  }

  // Returns true if the code equals an enumerator of any module or of std::errc:
  // error.is(Errc::NotFound).
  template <typename Enum>
  [[nodiscard]] bool is(Enum value) const {
    return code_ == value;
  }

  friend bool operator==(const Error&, const Error&) = default;

 private:
  [[nodiscard]] Error wrapped(std::string outer) const;

  std::error_code code_;
  std::string context_;
};

// Makes an error. `code` is an enumerator (Errc, an enum of a different module, std::errc) or an
// error_code.
template <typename... Args>
[[nodiscard]] Error fail(std::error_code code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <typename T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using Base = std::expected<T, Error>;
  using Base::Base;

  // A failure converts implicitly: `return fail(...)`, `return other.error()`.
  Result(Error error)  // NOLINT(google-explicit-constructor)
      : Base(std::unexpect, std::move(error)) {}
};

using Status = Result<void>;

}  // namespace score::inline base

template <>
struct fmt::formatter<score::Error> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const score::Error& error, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(error.message(), context);
  }
};
