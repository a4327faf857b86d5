// This file is tested by hello_test.cpp.

#include "proto/frames/errc.hpp"

#include <string>

namespace score::proto {

namespace {

class WireCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "score.wire"; }

  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<WireErrc>(value)) {
      case WireErrc::BadMagic:
        return "not the protocol of scored";
      case WireErrc::BadVersion:
        return "protocol version not spoken here";
      case WireErrc::BadFrame:
        return "malformed frame";
      case WireErrc::UnknownType:
        return "unknown frame type";
      case WireErrc::NotAllowed:
        return "frame not allowed from this sender";
      case WireErrc::TooLong:
        return "frame too long";
      case WireErrc::BadMessage:
        return "malformed message";
      case WireErrc::BadPeer:
        return "peer not accepted";
    }
    return "unknown error " + std::to_string(value);
  }
};

}  // namespace

const std::error_category& wire_category() noexcept {
  static const WireCategory category;
  return category;
}

std::error_code make_error_code(WireErrc code) noexcept {
  return {static_cast<int>(code), wire_category()};
}

}  // namespace score::proto
