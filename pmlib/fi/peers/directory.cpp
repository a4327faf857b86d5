#include "pmlib/fi/peers/directory.hpp"

#include "pmlib/wire/crc32c.hpp"

#include <algorithm>
#include <cstring>

namespace score::pm::fi {

namespace {

constexpr std::uint8_t kMagic = 'H';  // a frame of PM begins with 'P'
constexpr std::uint64_t kFirstPauseUs = 2'000;
constexpr std::uint64_t kLastPauseUs = 500'000;

struct Hello {
  std::uint8_t magic = kMagic;
  std::uint8_t is_welcome = 0;
  std::uint8_t reserved[4] = {};
  std::uint16_t length = 8;  // bytes beyond those of a FrameHeader
  std::uint64_t key = 0;     // the receiver's
  Name name;                 // the sender's
  std::uint32_t index = 0;   // the sender's number for the receiver
  std::uint32_t crc = 0;
};

// The UDP device uses the length field of a FrameHeader to cut joined datagrams.
static_assert(offsetof(Hello, length) == offsetof(FrameHeader, length));
static_assert(sizeof(Hello) == sizeof(FrameHeader) + 8);

PeerAddress address_of(const Name& name) {
  PeerAddress address;
  std::memcpy(address.bytes.data(), &name.ip, 4);
  std::memcpy(address.bytes.data() + 4, &name.udp_port, 2);
  return address;
}

}  // namespace

Directory::Directory(std::unique_ptr<UdpDevice> device, const Name& own, std::uint32_t capacity)
    : device_(std::move(device)), own_(own), capacity_(capacity), peers_(1) {
  own_.port = 0;
  peers_[0].name = own_;
}

std::uint32_t Directory::find_or_add(const Name& name) {
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (name.key == peers_[i].name.key) return i;
  }
  if (peers_.size() >= capacity_) return 0;
  Peer peer;
  peer.name = name;
  peer.name.port = 0;
  peers_.push_back(peer);
  ++unready_;
  const auto index = static_cast<std::uint32_t>(peers_.size() - 1);
  if (listener_ != nullptr) listener_->on_address(index, address_of(name));
  return index;
}

void Directory::tick(std::uint64_t now_us) {
  for (std::uint32_t i = 1; i < peers_.size() && unready_ > 0; ++i) {
    Peer& peer = peers_[i];
    if (peer.is_ready || now_us < peer.due_us) continue;
    peer.pause_us = std::clamp(peer.pause_us * 2, kFirstPauseUs, kLastPauseUs);
    peer.due_us = now_us + peer.pause_us;
    send_hello(i, false);
  }
}

void Directory::send_hello(std::uint32_t index, bool is_welcome) {
  const Peer& peer = peers_[index];
  Hello hello;
  hello.is_welcome = is_welcome ? 1 : 0;
  hello.key = peer.name.key;
  hello.name = own_;
  hello.index = index;
  hello.crc = crc32c(0, &hello, offsetof(Hello, crc));
  const FrameOut frame{std::as_bytes(std::span(&hello, 1)), {}};
  device_->send(address_of(peer.name), {&frame, 1});
}

void Directory::on_frame(std::span<const std::byte> frame) {
  if (!frame.empty() && frame[0] == std::byte{kMagic}) {
    on_hello(frame);
  } else {
    sink_->on_frame(frame);
  }
}

void Directory::on_hello(std::span<const std::byte> frame) {
  Hello hello;
  Name name;
  if (frame.size() != sizeof hello) return;
  std::memcpy(&hello, frame.data(), sizeof hello);
  if (hello.key != own_.key || hello.crc != crc32c(0, &hello, offsetof(Hello, crc)) ||
      !read_name(&hello.name, name) || name.kind != NameKind::Udp || hello.index == 0 ||
      hello.index >= capacity_ || name.payload != own_.payload) {
    return;
  }
  const std::uint32_t index = find_or_add(name);
  if (index == 0) return;
  Peer& peer = peers_[index];
  if (!peer.is_ready) {
    peer.is_ready = true;
    --unready_;
    if (listener_ != nullptr) listener_->on_known(index, name.key, hello.index);
  }
  if (hello.is_welcome == 0) send_hello(index, true);
}

}  // namespace score::pm::fi
