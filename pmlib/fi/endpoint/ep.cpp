// Implements binding, options and closing of an endpoint.
#include "pmlib/fi/endpoint/ep.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace score::pm::fi {

namespace {

constexpr std::uint64_t kCloseUs = 2'000'000;  // for operations in flight

}  // namespace

Ep::~Ep() = default;

int Ep::bind_cq(Cq& cq, std::uint64_t flags) {
  const bool is_selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if ((flags & (FI_SEND | FI_RECV)) == 0) return -FI_EINVAL;
  if ((flags & FI_SEND) != 0) {
    send_cq_ = &cq;
    is_selective_send_ = is_selective;
  }
  if ((flags & FI_RECV) != 0) {
    receive_cq_ = &cq;
    is_selective_receive_ = is_selective;
  }
  return 0;
}

int Ep::bind(fid_t other, std::uint64_t flags) {
  if (other == nullptr) return -FI_EINVAL;
  Guard guard(link_);
  switch (other->fclass) {
    case FI_CLASS_EQ:
      return 0;
    case FI_CLASS_AV:
      av_ = &object_of<Av>(other);
      return 0;
    case FI_CLASS_CQ:
      return bind_cq(object_of<Cq>(other), flags);
    case FI_CLASS_CNTR: {
      Counter* const counter = &object_of<Counter>(other);
      if ((flags & FI_SEND) != 0) counters_.send = counter;
      if ((flags & FI_RECV) != 0) counters_.receive = counter;
      if ((flags & FI_READ) != 0) counters_.read = counter;
      if ((flags & FI_WRITE) != 0) counters_.write = counter;
      if ((flags & FI_REMOTE_READ) != 0) counters_.remote_read = counter;
      if ((flags & FI_REMOTE_WRITE) != 0) counters_.remote_write = counter;
      return 0;
    }
    default:
      return -FI_EINVAL;
  }
}

int Ep::enable() {
  Guard guard(link_);
  if (is_enabled_) return 0;
  if (av_ == nullptr) return -FI_ENOAV;
  if (const int error = link_.receiver().add_port(*this, port_); error != 0) return -error;
  is_enabled_ = true;
  return 0;
}

int Ep::name(void* address, std::size_t* length) {
  if (length == nullptr || (address == nullptr && *length > 0)) return -FI_EINVAL;
  Guard guard(link_);
  if (!is_enabled_) return -FI_EOPBADSTATE;
  const std::string own = domain_.address_of(link_.peers().name_of(port_));
  const std::size_t room = std::exchange(*length, own.size());
  if (room > 0) std::memcpy(address, own.data(), std::min(room, own.size()));
  return room >= own.size() ? 0 : -FI_ETOOSMALL;
}

// --- options -----------------------------------------------------------------------------------

int Ep::get_option(int option, void* value, std::size_t* length) const {
  if (option != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (*length < sizeof min_multi_) return -FI_ETOOSMALL;
  std::memcpy(value, &min_multi_, sizeof min_multi_);
  *length = sizeof min_multi_;
  return 0;
}

int Ep::set_option(int option, const void* value, std::size_t length) {
  if (option != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (length < sizeof min_multi_) return -FI_EINVAL;
  Guard guard(link_);
  std::memcpy(&min_multi_, value, sizeof min_multi_);
  min_multi_ = std::max<std::size_t>(min_multi_, 1);
  return 0;
}

int Ep::get_flags(std::uint64_t& flags) const {
  const bool is_send = (flags & FI_TRANSMIT) != 0;
  if (is_send == ((flags & FI_RECV) != 0)) return -FI_EINVAL;
  flags = is_send ? send_flags_ : receive_flags_;
  return 0;
}

int Ep::set_flags(std::uint64_t flags) {
  const bool is_send = (flags & FI_TRANSMIT) != 0;
  if (is_send == ((flags & FI_RECV) != 0)) return -FI_EINVAL;
  flags &= ~(std::uint64_t{FI_TRANSMIT} | FI_RECV);
  (is_send ? send_flags_ : receive_flags_) = flags;
  return 0;
}

// --- the end -----------------------------------------------------------------------------------

void Ep::close() {
  const std::shared_ptr<Ep> keep = self_;  // until the lock is released
  Guard guard(link_);
  const std::uint64_t end = Link::now_us() + kCloseUs;
  const auto is_over = [this] {
    return link_.is_drained() && (order_ == nullptr || order_->held_count() == 0);
  };
  while (is_enabled_ && !is_over() && Link::now_us() < end) link_.progress();
  if (is_enabled_) link_.receiver().remove_port(port_);
  is_enabled_ = false;
  send_cq_ = receive_cq_ = nullptr;
  counters_ = {};
  if (order_ != nullptr) order_->clear();
  while (!messages_.is_alone())
    drop(*static_cast<BufferedMessage::Alive*>(messages_.next)->message);
  av_ = nullptr;
  --domain_.users;
  self_.reset();
}

}  // namespace score::pm::fi
