// WireErrc enumerates the faults in the bytes of a peer. The connection must be closed after one of
// these. Other failures of a connection are base::Errc::Closed (end of file), base::Errc::Timeout
// and errno.
#pragma once

#include <system_error>

namespace score::proto {

enum class WireErrc {
  BadMagic = 1,  // not our protocol
  BadVersion,    // header or message version that this program does not speak
  BadFrame,      // reserved bits set, or a stream that ends inside a frame
  UnknownType,   // no such frame type
  NotAllowed,    // the sender may not send this frame
  TooLong,       // longer than the type's limit
  BadMessage,    // the payload is not the expected message, or a field is out of range
  BadPeer,       // the peer could not prove its identity, or has an unexpected one
};

const std::error_category& wire_category() noexcept;  // the only instance
std::error_code make_error_code(WireErrc code) noexcept;

}  // namespace score::proto

template <>
struct std::is_error_code_enum<score::proto::WireErrc> : std::true_type {};
