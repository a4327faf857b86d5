#pragma once
// Handles the requests that the PMIx servers of a job settle among themselves, as a pure object,
// one per node. These are names that tasks publish and look up, one task's data for a different
// node (direct modex), and fences of some of the job's ranks. The head relays messages between
// nodes.
//
// The node of rank 0 stores names; the first node that takes part gathers a fence. A request
// without an answer is repeated, and a node that receives it twice answers twice, so nothing is
// lost when a daemon is restarted.

#include "base/time.hpp"
#include "proto/common.pb.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::pmix {

enum class ExchangeOutcome : std::uint32_t {
  Success,
  NotFound,
  Partial,
  Duplicate,
  TimedOut,
  Refused
};

struct PublishedItem {
  std::uint32_t owner = 0;  // rank
  std::string key;
  std::string value;
};

class Exchange {
 public:
  using Token = std::uint64_t;  // the caller's name for a request; each is answered once

  struct Answer {
    Token token = 0;
    ExchangeOutcome outcome = ExchangeOutcome::Success;
    std::string data;                  // of get and fence
    std::vector<PublishedItem> items;  // of lookup
  };

  struct Message {
    std::uint32_t node = 0;
    wire::PmixPeer message;
  };

  struct Ask {  // asks this node's library for the data of a rank; see answered()
    std::uint32_t rank = 0;
    std::uint64_t ticket = 0;
  };

  struct Actions {
    std::vector<Message> messages;
    std::vector<Answer> answers;
    std::vector<Ask> asks;
  };

  struct Options {
    std::optional<base::TimePoint> deadline;  // after that, TimedOut
    bool waits = false;                       // lookup: wait until all keys exist
  };

  // nodes_of_ranks is indexed by rank and must not be empty.
  Exchange(std::uint32_t node, std::vector<std::uint32_t> nodes_of_ranks);

  // ---- requests of this node's tasks
  void publish(Token token, std::vector<PublishedItem> items, base::TimePoint now);
  void lookup(Token token, const std::vector<std::string>& keys, Options options,
              base::TimePoint now);
  // An empty `keys` means all that the rank has published. The answer is NotFound if the rank has
  // published none of `keys`.
  void unpublish(Token token, std::uint32_t rank, const std::vector<std::string>& keys,
                 base::TimePoint now);
  void get(Token token, std::uint32_t rank, Options options, base::TimePoint now);
  // Enters a fence, once all local ranks of `ranks` have entered it. The answer is the data of all
  // nodes, in the order of the nodes.
  void fence(Token token, std::vector<std::uint32_t> ranks, std::string data, base::TimePoint now);

  // ---- incoming events
  void answered(std::uint64_t ticket, ExchangeOutcome outcome, std::string data);
  // Handles a message from another node. Invalid messages are ignored.
  void receive(std::uint32_t from, const wire::PmixPeer& message);
  // Repeats requests that have waited for long and fails those past their deadline. Call it once
  // per second.
  void turn(base::TimePoint now);

  // Returns the actions that have become due since the last call.
  [[nodiscard]] Actions take_actions();

  [[nodiscard]] bool has_pending() const { return !pending_.empty(); }

 private:
  struct Pending {
    Token token = 0;
    std::uint32_t node = 0;
    wire::PmixPeer message;
    base::TimePoint sent;
    std::optional<base::TimePoint> deadline;
  };

  struct Published {
    std::uint32_t owner = 0;
    std::string value;
  };

  using Asker = std::pair<std::uint32_t, std::uint64_t>;  // node and its request
  using Ranks = std::vector<std::uint32_t>;

  struct RankBarrier {
    std::map<std::uint32_t, std::string> data;  // [node]
    std::map<std::uint32_t, std::uint64_t> requests;
  };

  struct FenceState {
    std::uint64_t begun = 0;                      // the last round that this node began
    std::map<std::uint64_t, RankBarrier> rounds;  // at the rank barrier node
    std::uint64_t done = 0;
    std::string last;  // data of `done`, for a node that repeats its request
  };

  void begin(wire::PmixPeer message, const Pending& pending);
  void send(std::uint32_t node, const wire::PmixPeer& message);
  void answer(const Asker& asker, ExchangeOutcome outcome, wire::PmixPeer message);
  void handle(std::uint32_t from, const wire::PmixPeer& message);
  void on_answer(std::uint32_t from, const wire::PmixPeer& message);
  void on_get(std::uint32_t from, const wire::PmixPeer& message);
  void on_publish(std::uint32_t from, const wire::PmixPeer& message);
  void on_lookup(std::uint32_t from, const wire::PmixPeer& message);
  void on_unpublish(std::uint32_t from, const wire::PmixPeer& message);
  void on_enter(std::uint32_t from, const wire::PmixPeer& message);
  bool try_lookup(const Asker& asker, const wire::PmixPeer& message, bool is_last);
  [[nodiscard]] std::vector<std::uint32_t> nodes_of(const Ranks& ranks) const;

  std::uint32_t node_;
  std::vector<std::uint32_t> nodes_of_ranks_;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, Pending> pending_;  // [request]
  std::map<std::string, Published, std::less<>> collector_;
  std::size_t board_bytes_ = 0;
  std::map<Asker, wire::PmixPeer> waiting_lookups_;
  std::deque<std::pair<Asker, ExchangeOutcome>> unpublished_;  // the last answers, for repeats
  std::map<Asker, std::uint64_t> tickets_;
  std::map<std::uint64_t, Asker> askers_;  // [ticket]
  std::uint64_t last_ticket_ = 0;
  std::map<Ranks, FenceState> fences_;
  Actions actions_;
};

// Returns the reply to a message of another node if this node no longer has an exchange because its
// tasks have ended. The reply is NotFound to a request; there is none to any other message.
std::optional<wire::PmixPeer> answer_of_the_departed(const wire::PmixPeer& message);

}  // namespace score::pmix
