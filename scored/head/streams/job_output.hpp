#pragma once
// JobOutput is one job's output on its way from nodes to clients. The class is pure: it takes
// events and returns actions.
//
// Everything that arrives becomes part of one log with byte offsets from 0. Clients are cursors
// into it, each with a window. There are two ways in which nodes get room for more output:
//
//   front end      The normal case. The nodes get room for what the front end has taken. If it is
//                  slow or absent, the log stops growing when the nodes' windows are used up.
//   no front end   Detached jobs, and every job that is being ended. Nodes get room for output as
//                  it arrives, and only the end of it is kept.
//
// Watchers never slow the output down: a watcher that is too slow gets a line that says how much it
// missed.

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
  std::uint32_t node_index = 0;  // the node that sent it
  Rank rank;
  bool is_error = false;     // stderr, else stdout
  std::string data;          // not empty
  AttemptId attempt{0};      // 0: text of the head itself
  std::uint64_t offset = 0;  // of data in all output of that node of that attempt
};

struct SendOutput {
  ClientId client;
  std::shared_ptr<const OutputChunk> chunk;
  std::size_t skip = 0;  // bytes at its beginning that the client already has
};

struct CreditNode {  // the node may send this many more bytes
  std::uint32_t node_index = 0;
  std::uint64_t bytes = 0;
};

struct OutputOver {  // the client has all output, so JobEnded may follow; once per client
  ClientId client;
};

using OutputAction = std::variant<SendOutput, CreditNode, OutputOver>;
using OutputActions = std::vector<OutputAction>;

class JobOutput {
 public:
  static constexpr std::size_t kKeptBytes = 64 * limits::kKiB;      // for clients that come late
  static constexpr std::size_t kKeptForClients = 1 * limits::kMiB;  // only watchers are attached
  static constexpr std::size_t kChunkCost = 160;  // memory that a chunk takes beside its data
  static constexpr std::size_t kMinWindow = limits::kIoChunkBytes;
  static constexpr std::size_t kMaxWindow = 1 * limits::kMiB;
  static constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << 62;  // where a log may begin

  // `recovered` means that the head was restarted, so only the front end has counted the earlier
  // output. The first front end that attaches says where the log begins. Nodes repeat what was in
  // flight, so it is sent again; clients detect repeats by attempt, node and offset of the chunks.
  JobOutput(bool driven_by_front_end, bool recovered)
      : wanted_(driven_by_front_end), waits_(driven_by_front_end), rebase_(recovered) {}

  OutputActions arrived(OutputChunk chunk);

  // Keeps at most this much for clients that come late and for watchers, from the next output on.
  void limit_kept(std::size_t bytes) { most_kept_ = bytes; }

  // `have_bytes` is how much of the log the client has. A window outside kMinWindow ... kMaxWindow
  // becomes the nearest of them. A client must attach only once.
  OutputActions attach(ClientId client, bool front_end, std::uint64_t window,
                       std::uint64_t have_bytes);
  // Taking more than was sent counts as taking all of it.
  OutputActions taken(ClientId client, std::uint64_t bytes);
  // The client leaves. If a front end drives the output, it waits for the next front end.
  OutputActions leave(ClientId client);
  // Makes output wait for no client any more, because the job is being killed. The front end still
  // gets the rest.
  OutputActions release();

  // A new attempt begins: output waits again as before release(). Output of the earlier attempt
  // stays.
  void restart() { waits_ = wanted_; }

  // The job has no front end any more, by request.
  OutputActions abandon();
  // No more output will arrive.
  OutputActions finish();

  [[nodiscard]] bool has_front_end() const { return front_end_ != ClientId(); }

  // Returns true if the output is finished, every client was sent everything, and the front end
  // took it. Then nothing of it is needed any more.
  [[nodiscard]] bool is_delivered() const;

  // Returns true if no front end has taken or will take the output.
  [[nodiscard]] bool is_unread() const { return !wanted_; }

  // Returns the end of the output that is kept, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const OutputChunk>> kept() const;

  [[nodiscard]] std::size_t kept_bytes() const { return static_cast<std::size_t>(end_ - begin_); }

  // Returns true if nodes get room only for what the front end has taken.
  [[nodiscard]] bool waits() const { return waits_; }

  // Returns the memory of output for which nodes have no room back yet.
  [[nodiscard]] std::size_t waiting_bytes() const;

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
  void send_missed_marker(ClientId id, Client& client, OutputActions& actions) const;
  // Gives room back to nodes for everything before `offset`.
  void give_back(std::uint64_t offset, OutputActions& actions);
  void trim();

  std::deque<Entry> log_;
  std::uint64_t begin_ = 0;  // offset of the first byte kept
  std::uint64_t end_ = 0;
  std::uint64_t given_back_ = 0;  // nodes got their room back up to here
  std::map<ClientId, Client> clients_;
  ClientId front_end_;
  std::uint64_t front_taken_ = 0;  // by the front end, even by one that has left
  bool wanted_;                    // a front end will take all of it
  bool waits_;                     // the front end drives
  bool rebase_;
  std::size_t most_kept_ = kKeptForClients;
  bool over_ = false;
};

}  // namespace score::head
