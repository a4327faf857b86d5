// Represents one attempt's use of its channel, as the switcher sees it. It has contexts, in which
// the time of its stops is published, and sockets, which other attempts may use in turn.
//
// A channel that changes its attempt is emptied first. Frames in its sockets are saved for the
// attempt whose key they carry, and restored when that attempt has the channel again. Nothing waits
// for an acknowledgement: frames that do not fit are dropped, and PM sends them again.
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

// Counts events of all channels of a node; the counters only grow. Frames arrive joined, and such a
// burst counts once.
struct ChannelCounters {
  std::atomic<std::uint64_t> handovers{0};
  std::atomic<std::uint64_t> saved_bursts{0};
  std::atomic<std::uint64_t> saved_bytes{0};
  std::atomic<std::uint64_t> restored_bursts{0};
  std::atomic<std::uint64_t> dropped_full{0};       // bursts that did not fit into the buffer
  std::atomic<std::uint64_t> dropped_strangers{0};  // bursts of no attempt on this node
};

class ChannelUser {
 public:
  using Sockets = std::vector<std::shared_ptr<ChannelSocket>>;

  // `key` is the key in the attempt's frames.
  ChannelUser(std::uint64_t key, std::shared_ptr<const ContextSet> contexts, Sockets sockets);

  // Allocates the memory for saved frames, kSavedBytes per socket; pages are used only when
  // written. Must be called once, by the main thread, before the switcher has the object.
  void make_room();

  [[nodiscard]] const Sockets& sockets() const { return sockets_; }

  // Returns true if the two take turns at a socket.
  [[nodiscard]] bool shares_with(const ChannelUser& other) const;

  [[nodiscard]] const std::shared_ptr<const ContextSet>& contexts() const { return contexts_; }

  // ---- For the switcher's thread; no allocation, no wait.
  //  Publishes that the attempt was stopped for this long and continues next.
  void add_stopped(Duration stopped) noexcept;
  // Returns true if everything that was sent through its sockets has left this node.
  [[nodiscard]] bool is_flushed() const noexcept;
  // Returns true if no other attempt has used its sockets since this one did.
  [[nodiscard]] bool holds_channel() const noexcept;
  // Returns true if a different attempt had the channel before; its frames may still be in flight.
  [[nodiscard]] bool follows_another() const noexcept;
  // Empties its sockets; the frames are saved for the attempts of `all` to which they belong.
  void empty_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                     ChannelCounters& counters) noexcept;
  // Empties its sockets and becomes their holder.
  void take_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                    ChannelCounters& counters) noexcept;
  // Puts its saved frames back into its sockets.
  void restore(ChannelCounters& counters) noexcept;

  static constexpr std::size_t kSavedBytes = std::size_t{256} * 1024;  // per socket

 private:
  struct Saved {
    std::unique_ptr<std::byte[]> bytes;  // each burst follows its length
    std::size_t used = 0;
  };

  void empty_socket(std::size_t task, std::span<const std::shared_ptr<ChannelUser>> all,
                    ChannelCounters& counters) noexcept;
  void save(std::size_t task, std::span<const std::byte> burst, ChannelCounters& counters) noexcept;

  struct Unmap {
    void operator()(std::byte* page) const noexcept;
  };

  using Page = std::unique_ptr<std::byte, Unmap>;

  // Holds the stops that have been published in a context so far. They are read only once, because
  // there is no other writer.
  struct Stops {
    Page page;  // the context's page for writing; null: a system call writes
    bool is_known = false;
    pm::StoppedTime stopped;
  };

  static Page map_stopped_time(int context);
  static void publish(const Stops& stops, int context) noexcept;

  std::uint64_t key_;
  std::shared_ptr<const ContextSet> contexts_;
  std::vector<Stops> stops_;  // [context]; for the switcher's thread
  Sockets sockets_;
  std::vector<Saved> saved_;  // [task]
};

}  // namespace score::node
