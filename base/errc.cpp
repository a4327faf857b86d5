// Its functions are tested by result_test.cpp.

#include "base/errc.hpp"

#include <string>

namespace score::inline base {

namespace {

class ErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "score"; }

  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::Malformed:
        return "malformed";
      case Errc::TooLarge:
        return "too large";
      case Errc::NotFound:
        return "not found";
      case Errc::Exists:
        return "exists already";
      case Errc::Denied:
        return "permission denied";
      case Errc::Unsupported:
        return "not supported here";
      case Errc::WrongState:
        return "not possible in this state";
      case Errc::Busy:
        return "busy, try again later";
      case Errc::Timeout:
        return "timed out";
      case Errc::Cancelled:
        return "cancelled";
      case Errc::Closed:
        return "closed by the other side";
    }
    return "unknown error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& errc_category() noexcept {
  static const ErrorCategory category;
  return category;
}

std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), errc_category()};
}

}  // namespace score::inline base
