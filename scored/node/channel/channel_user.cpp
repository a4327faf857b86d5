#include "scored/node/channel/channel_user.hpp"

#include "pmlib/wire/frame.hpp"
#include "scored/node/kernel/kernel_call.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <utility>

namespace score::node {

namespace {

constexpr std::size_t kMostBursts = 4'096;  // per socket: a flood must not delay the switch
constexpr std::size_t kBurstBytes = 65'536;
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr std::size_t kMappedBytes = pm::kStoppedTimeAt + pm::kStoppedTimeBytes;

// Returns true if a mapping of the descriptor cannot fail later. The memory belongs to the user,
// who can write to it but must not be able to make an access fail. So it must be sealed against
// truncation and consist of ordinary pages, because huge ones may run out.
bool is_always_there(int memory) {
  struct statfs system {};

  struct stat file {};

  const int seals = fcntl(memory, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstatfs(memory, &system) == 0 &&
         system.f_type == TMPFS_MAGIC && fstat(memory, &file) == 0 &&
         file.st_size >= static_cast<off_t>(kMappedBytes);
}

// Only the switcher's thread uses the buffer.
alignas(64) std::array<std::byte, kBurstBytes> burst_buffer;

std::uint64_t key_of(std::span<const std::byte> burst) {
  std::uint64_t key = 0;
  if (burst.size() >= sizeof(pm::FrameHeader)) {
    std::memcpy(&key, burst.data() + offsetof(pm::FrameHeader, key), sizeof key);
  }
  return key;
}

// Returns the next burst, or an empty span if there is none. Pending errors of the socket (a peer's
// host refused a frame) are dropped, because no attempt waits for them.
std::span<const std::byte> next_burst(int fd) {
  for (int tries = 0; tries < 64; ++tries) {
    const ssize_t got = recv(fd, burst_buffer.data(), burst_buffer.size(), MSG_DONTWAIT);
    if (got > 0) return {burst_buffer.data(), static_cast<std::size_t>(got)};
    if (got < 0 && (errno == EAGAIN || errno == EBADF)) return {};
  }
  return {};
}

sockaddr_in address_of_socket(const ChannelSocket& socket) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  std::memcpy(&address.sin_addr, socket.address.data(), 4);
  std::memcpy(&address.sin_port, socket.address.data() + 4, 2);
  return address;
}

}  // namespace

ChannelUser::ChannelUser(std::uint64_t key, std::shared_ptr<const ContextSet> contexts,
                         Sockets sockets)
    : key_(key),
      contexts_(std::move(contexts)),
      stops_(contexts_ ? contexts_->size() : 0),
      sockets_(std::move(sockets)),
      saved_(sockets_.size()) {
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    stops_[i].page = map_stopped_time((*contexts_)[i].get());
  }
}

bool ChannelUser::shares_with(const ChannelUser& other) const {
  const auto has = [&](const auto& socket) {
    return std::find(other.sockets_.begin(), other.sockets_.end(), socket) != other.sockets_.end();
  };
  return std::any_of(sockets_.begin(), sockets_.end(), has);
}

void ChannelUser::Unmap::operator()(std::byte* page) const noexcept {
  munmap(page, kMappedBytes);
}

ChannelUser::Page ChannelUser::map_stopped_time(int context) {
  if (!is_always_there(context)) return nullptr;
  void* const page =
      mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, context, 0);
  return Page(page == MAP_FAILED ? nullptr : static_cast<std::byte*>(page));
}

void ChannelUser::make_room() {
  for (Saved& saved : saved_) {
    if (!saved.bytes) saved.bytes = std::make_unique_for_overwrite<std::byte[]>(kSavedBytes);
  }
}

[[gnu::hot]] void ChannelUser::add_stopped(Duration stopped) noexcept {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(stopped).count();
  if (us <= 0 || contexts_ == nullptr) return;
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const int context = (*contexts_)[i].get();
    Stops& stops = stops_[i];
    if (!stops.is_known) stops.is_known = pm::read_stopped_time(context, stops.stopped) == 0;
    if (!stops.is_known) continue;
    stops.stopped.microseconds += static_cast<std::uint64_t>(us);
    ++stops.stopped.times;
    publish(stops, context);
  }
}

[[gnu::hot]] void ChannelUser::publish(const Stops& stops, int context) noexcept {
  if (stops.page == nullptr) {
    kernel_call(SYS_pwrite64, context, address_of(&stops.stopped), pm::kStoppedTimeBytes,
                pm::kStoppedTimeAt);
    return;
  }
  std::byte* const at = stops.page.get() + pm::kStoppedTimeAt;
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at))
      .store(stops.stopped.microseconds, kRelaxed);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at + sizeof stops.stopped.microseconds))
      .store(stops.stopped.times, std::memory_order_release);
}

bool ChannelUser::is_flushed() const noexcept {
  for (const auto& socket : sockets_) {
    int waiting = 0;
    if (ioctl(socket->fd.get(), SIOCOUTQ, &waiting) == 0 && waiting > 0) return false;
  }
  return true;
}

[[gnu::hot]] bool ChannelUser::holds_channel() const noexcept {
  for (const auto& socket : sockets_) {
    if (socket->holder != key_) return false;
  }
  return true;
}

bool ChannelUser::follows_another() const noexcept {
  for (const auto& socket : sockets_) {
    if (socket->holder != key_ && socket->holder != 0) return true;
  }
  return false;
}

void ChannelUser::empty_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                                ChannelCounters& counters) noexcept {
  for (std::size_t task = 0; task < sockets_.size(); ++task) {
    // A socket that was not used before holds only frames for its first user.
    if (sockets_[task]->holder != 0) empty_socket(task, all, counters);
  }
}

void ChannelUser::take_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                               ChannelCounters& counters) noexcept {
  empty_channel(all, counters);
  for (const auto& socket : sockets_) socket->holder = key_;
  counters.handovers.fetch_add(1, kRelaxed);
}

void ChannelUser::empty_socket(std::size_t task, std::span<const std::shared_ptr<ChannelUser>> all,
                               ChannelCounters& counters) noexcept {
  const ChannelSocket& socket = *sockets_[task];
  // If tags are in use, frames have no key. They then belong to the last holder of the channel.
  const auto owner_of = [&](std::uint64_t key) -> ChannelUser* {
    ChannelUser* last = nullptr;
    for (const auto& user : all) {
      if (!user || user->sockets_.size() <= task || user->sockets_[task] != sockets_[task]) {
        continue;
      }
      if (user->key_ == key) return user.get();
      if (user->key_ == socket.holder) last = user.get();
    }
    return last;
  };
  for (std::size_t bursts = 0; bursts < kMostBursts; ++bursts) {
    const auto burst = next_burst(socket.fd.get());
    if (burst.empty()) return;
    if (ChannelUser* owner = owner_of(key_of(burst))) {
      owner->save(task, burst, counters);
    } else {
      counters.dropped_strangers.fetch_add(1, kRelaxed);
    }
  }
}

void ChannelUser::save(std::size_t task, std::span<const std::byte> burst,
                       ChannelCounters& counters) noexcept {
  Saved& saved = saved_[task];
  const auto length = static_cast<std::uint32_t>(burst.size());
  if (!saved.bytes || burst.size() + sizeof length > kSavedBytes - saved.used) {
    counters.dropped_full.fetch_add(1, kRelaxed);
    return;
  }
  std::memcpy(saved.bytes.get() + saved.used, &length, sizeof length);
  std::memcpy(saved.bytes.get() + saved.used + sizeof length, burst.data(), burst.size());
  saved.used += sizeof length + burst.size();
  counters.saved_bursts.fetch_add(1, kRelaxed);
  counters.saved_bytes.fetch_add(burst.size(), kRelaxed);
}

// Sends the frames to the socket's own address in their old order, so that they queue in it again.
void ChannelUser::restore(ChannelCounters& counters) noexcept {
  for (std::size_t task = 0; task < sockets_.size(); ++task) {
    Saved& saved = saved_[task];
    const ChannelSocket& socket = *sockets_[task];
    const sockaddr_in own = address_of_socket(socket);
    std::size_t at = 0;
    while (at < saved.used) {
      std::uint32_t length = 0;
      std::memcpy(&length, saved.bytes.get() + at, sizeof length);
      at += sizeof length;
      const ssize_t sent = sendto(socket.fd.get(), saved.bytes.get() + at, length, MSG_DONTWAIT,
                                  reinterpret_cast<const sockaddr*>(&own), sizeof own);
      at += length;
      auto& counter = sent >= 0 ? counters.restored_bursts : counters.dropped_full;
      counter.fetch_add(1, kRelaxed);
    }
    saved.used = 0;
  }
}

}  // namespace score::node
