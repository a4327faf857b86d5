// One attempt's end of its channel, as the switcher sees it: contexts to be told how long they were
// stopped, and sockets that other attempts may use in turn.
//
// A channel that changes hands is emptied first: what is still in its sockets is kept for whom it
// belongs to, by the key in the frames, and put back when that one has the channel again. Nothing
// waits for anything to be acknowledged: what does not fit is dropped, and PM sends it again.
#pragma once

#include "base/ids.hpp"
#include "base/time.hpp"
#include "pmlib/core/segment.hpp"
#include "scored/node/network/channel_sockets.hpp"
#include "scored/node/network/job_contexts.hpp"

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
  std::atomic<std::uint64_t> dropped_strangers{0};  // bursts of nobody here
};

class ChannelUser {
 public:
  using Sockets = std::vector<std::shared_ptr<ChannelSocket>>;

  // key: of the attempt's frames.
  ChannelUser(std::uint64_t key, std::shared_ptr<const ContextSet> contexts, Sockets sockets);

  // Makes room for what is saved. Main thread, before the switcher has it, and once for good: each
  // socket costs kSavedBytes when they are used.
  void make_room();

  [[nodiscard]] const Sockets& sockets() const { return sockets_; }

  [[nodiscard]] const std::shared_ptr<const ContextSet>& contexts() const { return contexts_; }

  // ---- the switcher's thread; no allocation, no wait
  // The attempt was stopped for so long and goes on next.
  void add_stopped(Duration stopped) noexcept;
  // Nothing that was sent through its sockets is in this node any more.
  [[nodiscard]] bool is_flushed() const noexcept;
  // No other attempt has used its sockets since it did.
  [[nodiscard]] bool holds_channel() const noexcept;
  // Somebody had the channel before: frames of his may still be under way.
  [[nodiscard]] bool follows_another() const noexcept;
  // Empties its sockets into those of `all` that the frames belong to.
  void empty_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                     ChannelCounters& counters) noexcept;
  // The same, and becomes their holder.
  void take_channel(std::span<const std::shared_ptr<ChannelUser>> all,
                    ChannelCounters& counters) noexcept;
  // Puts back what was saved of it.
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

  // What a context was told so far. It is read once: nobody else writes it there.
  struct Told {
    Page page;  // of the context, where it is told; null: by a system call
    bool is_known = false;
    pm::StoppedTime stopped;
  };

  static Page map_stopped_time(int context);
  static void tell(const Told& told, int context) noexcept;

  std::uint64_t key_;
  std::shared_ptr<const ContextSet> contexts_;
  std::vector<Told> told_;  // [context]; the switcher's thread's
  Sockets sockets_;
  std::vector<Saved> saved_;  // [task]
};

}  // namespace score::node
