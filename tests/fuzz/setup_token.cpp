// This fuzz target parses tokens and identities of scored-setup, which the head reads from unproven
// peers, and the frames of their holders. An accepted token must be spelled as it would be made.
#include "proto/transport/setup_token.hpp"

#include "base/assert.hpp"
#include "proto/frames/parse.hpp"
#include "proto/node.pb.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace proto = score::proto;
namespace wire = score::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto token = proto::parse_setup_identity(text)) {
    SCORE_ASSERT(proto::setup_identity(*token) == text, "an identity has one spelling");
  }
  if (const auto secret = proto::parse_setup_secret(text)) {
    const auto again = proto::parse_setup_secret(proto::format_setup_secret(*secret));
    SCORE_ASSERT(again && again->token == secret->token && again->key == secret->key,
                 "a token survives its text");
  }
  static_cast<void>(proto::parse<wire::SetupHello>(text, "SetupHello").has_value());
  static_cast<void>(proto::parse<wire::SetupOffer>(text, "SetupOffer").has_value());
  static_cast<void>(proto::parse<wire::NodeKey>(text, "NodeKey").has_value());
  return 0;
}
