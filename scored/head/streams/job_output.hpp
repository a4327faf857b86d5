#pragma once
// One job's output on its way from nodes to clients. Pure: events in, actions out.
//
// Everything that arrives becomes part of one log with byte offsets from 0. Clients are cursors
// into it, each with a window. What gives a node room for more output:
//
//   the front end   (the normal case) what it has taken is given back to the nodes. If it is slow
//   or
//                   not there, the log stops growing when the nodes' windows are used up.
//   nothing         (detached jobs, and every job that is being ended) output is given back as it
//                   arrives; only the last of it is kept.
//
// Mere watchers never drive: one that is too slow finds a line that says how much it missed.

#include "base/ids.hpp"
#include "base/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace score::head {

using ClientId = Id<struct ClientTag, std::uint64_t>;

struct OutputChunk {
  std::uint32_t node_index = 0;  // where it came from
  Rank rank;
  bool is_error = false;     // stderr, else stdout
  std::string data;          // not empty
  AttemptId attempt{0};      // 0: the head's own words
  std::uint64_t offset = 0;  // of data in all output of that node of that attempt
};

struct SendOutput {
  ClientId client;
  std::shared_ptr<const OutputChunk> chunk;
  std::size_t skip = 0;  // bytes at its beginning that the client has already
};

struct CreditNode {  // the node may send so many bytes more
  std::uint32_t node_index = 0;
  std::uint64_t bytes = 0;
};

struct OutputOver {  // the client has been sent everything: JobEnded may follow. Once a client.
  ClientId client;
};

using OutputAction = std::variant<SendOutput, CreditNode, OutputOver>;
using OutputActions = std::vector<OutputAction>;

class JobOutput {
 public:
  static constexpr std::size_t kKeptBytes = 64 * limits::kKiB;      // for clients that come late
  static constexpr std::size_t kKeptForClients = 1 * limits::kMiB;  // no front end, but watchers
  static constexpr std::size_t kMinWindow = limits::kIoChunkBytes;
  static constexpr std::size_t kMaxWindow = 1 * limits::kMiB;
  static constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << 62;  // where a log may begin

  // recovered: the head restarted, and what was sent before is counted by the front end alone: the
  // first one that attaches says where the log begins. Nodes repeat what was on its way then, so it
  // is sent again; by attempt, node and offset of the chunks clients know what they have.
  JobOutput(bool driven_by_front_end, bool recovered)
      : wanted_(driven_by_front_end), waits_(driven_by_front_end), rebase_(recovered) {}

  OutputActions arrived(OutputChunk chunk);
  // have_bytes: how much of the log the client has. A window outside kMinWindow ... kMaxWindow
  // becomes the nearest of them. A client attaches once.
  OutputActions attach(ClientId client, bool front_end, std::uint64_t window,
                       std::uint64_t have_bytes);
  // More than was sent counts as all of it.
  OutputActions taken(ClientId client, std::uint64_t bytes);
  // The front end leaves: output waits for the next one, if the front end drives.
  OutputActions leave(ClientId client);
  // From now on output waits for no one: the job is being killed. The front end still gets the
  // rest.
  OutputActions release();

  // Another attempt: as it was before release(). What came of the one before stays.
  void restart() { waits_ = wanted_; }

  // It has no front end any more, by request.
  OutputActions abandon();
  // No more will arrive.
  OutputActions finish();

  [[nodiscard]] bool has_front_end() const { return front_end_ != ClientId(); }

  // Finished, every client was sent everything and the front end took it: nothing of it is needed
  // any more.
  [[nodiscard]] bool is_delivered() const;

  // No front end has it, or is to have it.
  [[nodiscard]] bool is_unread() const { return !wanted_; }

  // The end of it that is kept, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const OutputChunk>> kept() const;

  [[nodiscard]] std::size_t kept_bytes() const { return static_cast<std::size_t>(end_ - begin_); }

  [[nodiscard]] std::size_t client_count() const { return clients_.size(); }

 private:
  struct Entry {
    std::uint64_t offset = 0;
    std::shared_ptr<const OutputChunk> chunk;
  };

  struct Client {
    std::uint64_t next = 0;  // offset of the first byte not sent to it
    std::uint64_t window = 0;
    std::uint64_t in_flight = 0;
    bool knows_end = false;
  };

  void pump(ClientId id, Client& client, OutputActions& actions);
  void pump_all(OutputActions& actions);
  void say_missed(ClientId id, Client& client, OutputActions& actions) const;
  // Gives room back to nodes for everything before `offset`.
  void give_back(std::uint64_t offset, OutputActions& actions);
  void trim();

  std::deque<Entry> log_;
  std::uint64_t begin_ = 0;  // offset of the first byte kept
  std::uint64_t end_ = 0;
  std::uint64_t given_back_ = 0;  // nodes got their room back up to here
  std::map<ClientId, Client> clients_;
  ClientId front_end_;
  std::uint64_t front_taken_ = 0;  // by the front end, also by one that left
  bool wanted_;                    // a front end is to have all of it
  bool waits_;                     // the front end drives
  bool rebase_;
  bool over_ = false;
};

}  // namespace score::head
