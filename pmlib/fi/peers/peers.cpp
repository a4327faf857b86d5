#include "pmlib/fi/peers/peers.hpp"

#include <algorithm>
#include <cerrno>

namespace score::pm::fi {

Peers::Peers(pm::Endpoint& pm, const Name& own, Directory* directory)
    : pm_(pm), directory_(directory), name_(own) {
  if (directory_ != nullptr) directory_->set_listener(*this);
}

void Peers::on_known(std::uint32_t index, std::uint64_t key, std::uint32_t own_index) {
  pm_.set_alias(index, {key, own_index});
}

void Peers::on_address(std::uint32_t index, const PeerAddress& address) {
  pm_.segment().peer(index).address = address;
}

Name Peers::name_of(std::uint16_t port) const {
  Name name = name_;
  name.port = port;
  return name;
}

Name Peers::name_of_peer(PortName port) const {
  Name name = directory_ != nullptr ? directory_->name_of(port.peer) : name_;
  name.port = port.port;
  if (directory_ == nullptr) name.rank = port.peer;
  return name;
}

int Peers::resolve(const Name& name, PortName& port) {
  port.port = name.port;
  if (name.kind != name_.kind || !name.is_whole()) return EINVAL;
  if (directory_ != nullptr) {
    if (name.payload != name_.payload) return EINVAL;  // its frames do not fit
    port.peer = directory_->find_or_add(name);
    return port.peer != 0 || directory_->is_own(name) ? 0 : ENOSPC;
  }
  port.peer = name.rank;
  return name.key == name_.key && name.rank < pm_.size() ? 0 : EINVAL;
}

std::size_t Peers::smallest_message() const {
  const Geometry& g = pm_.segment().geometry();
  return std::min(g.payload_bytes, g.pool_buffer_bytes);
}

}  // namespace score::pm::fi
