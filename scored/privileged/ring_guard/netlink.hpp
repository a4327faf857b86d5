// Sends requests to the kernel's network configuration (rtnetlink(7)): a message with attributes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <linux/rtnetlink.h>
#include <string_view>

namespace score::ring_guard {

// `Body` is the struct that follows the header, for example tcmsg.
template <class Body>
class NetlinkRequest {
 public:
  NetlinkRequest(std::uint16_t type, int flags) {
    header().nlmsg_type = type;
    header().nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    header().nlmsg_len = NLMSG_LENGTH(sizeof(Body));
  }

  Body& body() { return *reinterpret_cast<Body*>(bytes_.data() + NLMSG_HDRLEN); }

  // Adds `size` bytes; 0 opens a nested attribute, which must be closed.
  rtattr* add(unsigned short type, const void* data, std::size_t size) {
    auto* at = reinterpret_cast<rtattr*>(bytes_.data() + NLMSG_ALIGN(header().nlmsg_len));
    at->rta_type = type;
    at->rta_len = static_cast<unsigned short>(RTA_LENGTH(size));
    if (size != 0) std::memcpy(RTA_DATA(at), data, size);
    header().nlmsg_len =
        static_cast<std::uint32_t>(NLMSG_ALIGN(header().nlmsg_len) + RTA_ALIGN(at->rta_len));
    return at;
  }

  void add(unsigned short type, const char* text) { add(type, text, std::strlen(text) + 1); }

  void add(unsigned short type, std::uint32_t number) { add(type, &number, sizeof number); }

  // Closes `outer`: everything that was added since belongs to it.
  void close(rtattr* outer) {
    const auto* end = bytes_.data() + header().nlmsg_len;
    outer->rta_len = static_cast<unsigned short>(end - reinterpret_cast<std::byte*>(outer));
  }

  [[nodiscard]] std::string_view bytes() const {
    const auto* header = reinterpret_cast<const nlmsghdr*>(bytes_.data());
    return {reinterpret_cast<const char*>(bytes_.data()), header->nlmsg_len};
  }

 private:
  nlmsghdr& header() { return *reinterpret_cast<nlmsghdr*>(bytes_.data()); }

  alignas(nlmsghdr) std::array<std::byte, 512> bytes_{};  // more than these requests need
};

// Sends the request in this process's network namespace. Returns 0 or a negative errno.
int carry_out(std::string_view request);

}  // namespace score::ring_guard
