// One attempt's use of its channel, as the switcher sees it: contexts in which the time of its
// stops is published, and sockets that other attempts may use in turn.
//
// A channel that changes hands is emptied first: frames in its sockets are saved for the attempt
// whose key they carry, and restored when that attempt has the channel again. Nothing waits for an
// acknowledgement: what does not fit is dropped, and PM sends it again.
#pragma once

#include "base/ids.hpp"
#include "base/time.hpp"
#include "pmlib/core/segment.hpp"
#include "scored/node/channel/channel_sockets.hpp"
#include "scored/node/channel/job_contexts.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace score::node {

// Of all channels of a node; they only grow. Frames come joined: a burst counts once.
struct ChannelCounters {
  std::atomic<std::uint64_t> handovers{0};
  std::atomic<std::uint64_t> saved_bursts{0};
  std::atomic<std::uint64_t> saved_bytes{0};
  std::atomic<std::uint64_t> restored_bursts{0};
  std::atomic<std::uint64_t> dropped_full{0};       // bursts that found no room
  std::atomic<std::uint64_t> dropped_strangers{0};  // bursts of no attempt here
};

class ChannelUser {
 public:
  using Sockets = std::vector<std::shared_ptr<ChannelSocket>>;

  // key: of the attempt's frames.
  ChannelUser(std::uint64_t key, std::shared_ptr<const ContextSet> contexts, Sockets sockets);

  // Allocates the room for saved frames. Main thread, before the switcher has it, once: kSavedBytes
  // per socket, when they are used.
  void make_room();

  [[nodiscard]] const Sockets& sockets() const { return sockets_; }

  // They take turns at a socket.
  [[nodiscard]] bool shares_with(const ChannelUser& other) const;

  [[nodiscard]] const std::shared_ptr<const ContextSet>& contexts() const { return contexts_; }

  // ---- the switcher's thread; no allocation, no wait
  // The attempt was stopped for so long and goes on next.
  void add_stopped(Duration stopped) noexcept;
  // Everything that was sent through its sockets has left this node.
  [[nodiscard]] bool is_flushed() const noexcept;
  // No other attempt has used its sockets since it did.
  [[nodiscard]] bool holds_channel() const noexcept;
  // Another attempt had the channel before: its frames may still be in flight.
  [[nodiscard]] bool follows_another() const noexcept;
  // Empties its sockets into those of `all` that the frames belong to.
  void empty_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                     ChannelCounters& counters) noexcept;
  // The same, and becomes their holder.
  void take_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                    ChannelCounters& counters) noexcept;
  // Puts its saved frames back.
  void restore(ChannelCounters& counters) noexcept;

  static constexpr std::size_t kSavedBytes = std::size_t{256} * 1024;  // of one socket

 private:
  struct Saved {
    std::unique_ptr<std::byte[]> bytes;  // each burst behind its length
    std::size_t used = 0;
  };

  void empty_socket(std::size_t task, std::span<const std::shared_ptr<ChannelUser>> all,
                    ChannelCounters& counters) noexcept;
  void save(std::size_t task, std::span<const std::byte> burst, ChannelCounters& counters) noexcept;

  struct Unmap {
    void operator()(std::byte* page) const noexcept;
  };

  using Page = std::unique_ptr<std::byte, Unmap>;

  // The stops published in a context so far. Read once: there is no other writer.
  struct Stops {
    Page page;  // of the context, to write to; null: a system call writes
    bool is_known = false;
    pm::StoppedTime stopped;
  };

  static Page map_stopped_time(int context);
  static void publish(const Stops& stops, int context) noexcept;

  std::uint64_t key_;
  std::shared_ptr<const ContextSet> contexts_;
  std::vector<Stops> stops_;  // [context]; the switcher's thread's
  Sockets sockets_;
  std::vector<Saved> saved_;  // [task]
};

}  // namespace score::node
