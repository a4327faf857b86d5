#include "bench/pm/garbage.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/wire/frame_fields.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <random>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace score::bench {

namespace {

using FrameBytes = std::vector<std::byte>;

constexpr std::uint16_t kNobodysPort = 4999;
constexpr std::uint16_t kUnusedType = 0x88b7;  // not the bare ring's either
constexpr std::size_t kBatch = 50;

// Makes a frame that would be valid but for one fault.
FrameBytes spoiled_frame(std::mt19937& random, unsigned kind, const GarbageOptions& options) {
  FrameBytes bytes(sizeof(pm::FrameHeader) + random() % 1300);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  if (kind == 0) return bytes;
  pm::FrameHeader h;
  h.kind = pm::FrameKind::Message;
  h.length = static_cast<std::uint16_t>(bytes.size() - sizeof h);
  h.key = options.key;
  h.generation = options.generation;
  h.destination = 1;
  pm::SequencedFrame(h).sequence() = static_cast<std::uint32_t>(random() % 64);
  if (kind == 1) h.key = ~options.key;
  if (kind == 2) --h.generation;
  if (kind == 3) h.length = 65000;
  pm::seal(h, pm::crc32c(0, bytes.data() + sizeof h, bytes.size() - sizeof h));
  if (kind == 4) h.crc ^= 1;
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes;
}

std::vector<FrameBytes> make_frames(const GarbageOptions& options) {
  std::mt19937 random(1);
  std::vector<FrameBytes> frames;
  for (unsigned i = 0; i < 500; ++i) frames.push_back(spoiled_frame(random, i % 5, options));
  return frames;
}

// Sends whole datagrams or Ethernet frames, many per call.
class GarbageSender {
 public:
  GarbageSender(const TwoEnds& ends, const GarbageOptions& options)
      : frames_(make_frames(options)) {
    if (options.is_ethernet) {
      aim_at_type(ends, options);
    } else {
      aim_at_port(ends, options);
    }
  }

  ~GarbageSender() {
    close(fd_);
    if (sink_ >= 0) close(sink_);
  }

  GarbageSender(const GarbageSender&) = delete;
  GarbageSender& operator=(const GarbageSender&) = delete;

  std::size_t send(std::size_t count) {
    std::array<iovec, kBatch> pieces{};
    std::array<mmsghdr, kBatch> messages{};
    count = std::min(count, kBatch);
    for (std::size_t i = 0; i < count; ++i) {
      FrameBytes& frame = frames_[next_++ % frames_.size()];
      pieces[i] = {frame.data(), frame.size()};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int n = sendmmsg(fd_, messages.data(), static_cast<unsigned>(count), 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

 private:
  void aim_at_port(const TwoEnds& ends, const GarbageOptions& options) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.without_reader ? kNobodysPort : options.port);
    inet_pton(AF_INET, ends.address(1).c_str(), &address.sin_addr);
    if (options
            .without_reader) {  // a socket without a reader, or the kernel would answer each frame
      ends.enter(1);
      sink_ = socket(AF_INET, SOCK_DGRAM, 0);
      if (bind(sink_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
    }
    ends.enter(0);
    fd_ = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
  }

  void aim_at_type(const TwoEnds& ends, const GarbageOptions& options) {
    ends.enter(0);
    const std::uint16_t type = htons(options.without_reader ? kUnusedType : pm::kEtherType);
    pm::PeerAddress peer, own;
    pm::EthernetDevice::parse(ends.mac(1).c_str(), peer);
    pm::EthernetDevice::parse(ends.mac(0).c_str(), own);
    for (FrameBytes& frame : frames_) {
      FrameBytes whole(14);
      std::memcpy(whole.data(), peer.bytes.data(), 6);
      std::memcpy(whole.data() + 6, own.bytes.data(), 6);
      std::memcpy(whole.data() + 12, &type, 2);
      whole.insert(whole.end(), frame.begin(), frame.end());
      frame = std::move(whole);
    }
    fd_ = socket(AF_PACKET, SOCK_RAW, 0);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(if_nametoindex(TwoEnds::kInterface));
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) _exit(1);
  }

  std::vector<FrameBytes> frames_;
  std::size_t next_ = 0;
  int fd_ = -1;
  int sink_ = -1;
};

// Sends the frames of a millisecond at a time.
[[noreturn]] void send_for_ever(GarbageSender& sender, unsigned rate,
                                std::atomic<std::uint64_t>& sent) {
  const double start = now_seconds();
  for (;;) {
    const auto due = static_cast<std::uint64_t>((now_seconds() - start) * rate);
    while (sent.load() < due) sent += sender.send(static_cast<std::size_t>(due - sent.load()));
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

Garbage::Garbage(const TwoEnds& ends, const GarbageOptions& options) {
  void* memory =
      mmap(nullptr, sizeof *sent_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("cannot allocate memory");
  sent_ = static_cast<std::atomic<std::uint64_t>*>(memory);
  start_ = now_seconds();
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("cannot fork");
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    GarbageSender sender(ends, options);
    send_for_ever(sender, options.rate, *sent_);
  }
}

Garbage::~Garbage() {
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  munmap(sent_, sizeof *sent_);
}

double Garbage::rate() const {
  return static_cast<double>(sent_->load()) / (now_seconds() - start_);
}

}  // namespace score::bench
