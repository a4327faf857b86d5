// A name contains the key of a process, or the mark of its job, so a host name and a port do not
// identify a peer: peers exchange names. They do identify the address that the process's own socket
// gets (FI_SOURCE).
#include "pmlib/fi/addresses.hpp"

#include "pmlib/fi/link/link.hpp"

#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <string>

namespace score::pm::fi {

namespace {

// Resolves the first IPv4 address and port of a node and a service, either of which may be null.
bool resolve(const AddressQuery& query, std::uint32_t& ip, std::uint16_t& port) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = query.node == nullptr ? AI_PASSIVE : 0;
  if ((query.flags & FI_NUMERICHOST) != 0) hints.ai_flags |= AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(query.node, query.service, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  sockaddr_in in{};
  if (found == nullptr || found->ai_addrlen != sizeof in) return false;
  std::memcpy(&in, found->ai_addr, sizeof in);
  ip = in.sin_addr.s_addr;
  port = in.sin_port;
  return true;
}

// Allocates with malloc(), because fi_freeinfo(3) frees the memory.
bool store(const fi_info& info, const Name& name, void*& to, std::size_t& length) {
  const std::string text = info.addr_format == FI_ADDR_STR ? to_address(name) : std::string();
  const void* from = text.empty() ? static_cast<const void*>(&name) : text.c_str();
  length = text.empty() ? sizeof name : text.size() + 1;
  to = std::malloc(length);
  if (to == nullptr) return false;
  std::memcpy(to, from, length);
  return true;
}

// Finds the address that the process has, or will get from fi_domain(3).
int find_source(const fi_info& info, const AddressQuery& query, Name& name) {
  std::uint32_t ip = 0;
  std::uint16_t port = 0;
  const bool is_source = (query.flags & FI_SOURCE) != 0;
  const bool is_named = is_source && (query.node != nullptr || query.service != nullptr);
  if (is_named && !(query.node != nullptr && parse_name(query.node, name)) &&
      !resolve(query, ip, port)) {
    return -FI_ENODATA;
  }
  if (is_named && name.is_whole()) return 0;
  const fi_info* hints = query.hints;
  if (!is_named && hints != nullptr && hints->src_addr != nullptr) {
    const bool is_name = read_address(info.addr_format, hints->src_addr, hints->src_addrlen, name);
    return is_name ? 0 : -FI_EINVAL;
  }
  name = Link::expected_name(ip, port);
  return 0;
}

int find_destination(const fi_info& info, const AddressQuery& query, Name& name, bool& has_one) {
  const bool is_source = (query.flags & FI_SOURCE) != 0;
  has_one = true;
  if (!is_source && (query.node != nullptr || query.service != nullptr)) {
    const bool is_address = query.node != nullptr && query.service == nullptr;
    return is_address && parse_name(query.node, name) && name.is_whole() ? 0 : -FI_ENODATA;
  }
  const fi_info* hints = query.hints;
  has_one = hints != nullptr && hints->dest_addr != nullptr;
  if (!has_one) return 0;
  const bool is_name = read_address(info.addr_format, hints->dest_addr, hints->dest_addrlen, name);
  return is_name ? 0 : -FI_EINVAL;
}

}  // namespace

bool read_address(std::uint32_t format, const void* address, std::size_t length, Name& name) {
  if (address == nullptr) return false;
  if (format != FI_ADDR_STR) return length == sizeof name && read_name(address, name);
  const auto* text = static_cast<const char*>(address);
  return parse_name({text, strnlen(text, length)}, name);
}

int fill_addresses(fi_info& info, const AddressQuery& query) {
  Name source, destination;
  bool has_destination = false;
  if (const int error = find_source(info, query, source); error != 0) return error;
  if (const int error = find_destination(info, query, destination, has_destination); error != 0) {
    return error;
  }
  if (!store(info, source, info.src_addr, info.src_addrlen)) return -FI_ENOMEM;
  if (has_destination && !store(info, destination, info.dest_addr, info.dest_addrlen)) {
    return -FI_ENOMEM;
  }
  return 0;
}

}  // namespace score::pm::fi
