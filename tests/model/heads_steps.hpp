#pragma once
// A State has two heads, their disks, witnesses and links, with the shipped gang::Leadership and
// gang::Witness, as one state that is copied for each step of a search (heads_model.hpp).

#include "gang/leadership/leadership.hpp"
#include "tests/model/heads_model.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace score::gang::model {

inline constexpr Duration kTick = std::chrono::seconds(1);
inline constexpr int kTicksToLead = 30;

[[nodiscard]] LeaseTiming timing();

struct Disk {
  StoredTerms terms;
  LogPosition position;
  std::uint32_t log = 0;  // bit per entry

  [[nodiscard]] std::uint64_t key() const {
    return terms.greatest.value() << 40U | terms.granted.value() << 32U | log;
  }
};

struct Head {
  std::optional<Leadership> core;  // none: the process is down
  Disk disk;
  std::optional<Disk> copy;  // an earlier state of it
  bool is_opened = false;    // the first transaction of its term is stored
  bool is_stopped = false;
  bool ships = false;
  Epoch follows;      // the term of the leader that it has heard in this life
  Duration behind{};  // what its clock has lost
  std::vector<std::pair<std::uint64_t, std::uint8_t>> waiting;  // sequence, entry
};

// A lie is the answer of the lying witness. It was sent the mark that it shows, unless it can
// forge.
struct Lie {
  bool is_on = false;
  bool grants = false;
  LogMark mark;
};

struct Late {
  std::uint8_t head = 0;
  std::uint8_t witness = 0;
  bool is_reply = false;
  LeaseRequest request;
  LeaseReply reply;
};

struct State {
  std::array<Head, kHeads> heads;
  std::vector<Witness> witnesses;
  std::vector<LogMark> seen;  // by the lying witness
  Lie lie;
  std::optional<Late> late;
  bool holds_request = false;  // the next message between ... and the first witness is late
  bool holds_reply = false;
  std::uint32_t cuts = 0;
  std::uint32_t acknowledged = 0;  // bits of entries
  std::uint32_t unwitnessed = 0;
  std::uint8_t next_entry = 0;
  bool has_old_disk = false;
  bool has_stopped = false;
  bool has_forgotten = false;
  bool is_blind = false;             // a head was elected without a quorum of the witnesses
  bool has_elected_earlier = false;  // before the term of an earlier election
  Epoch elected;                     // greatest term of a head in charge
  Faults left;
  TimePoint now{std::chrono::hours(1)};
};

// Steps are the transitions between states.
class Steps {
 public:
  explicit Steps(const World& world) : world_(world) {}

  [[nodiscard]] State initial() const;
  void start(State& state, std::size_t i) const;
  void tick(State& state, std::size_t first) const;
  void submit(State& state, std::size_t i) const;
  void open(State& state, std::size_t i) const;
  void replicate(State& state, std::size_t i, bool is_reported) const;
  void lose_follower(State& state, std::size_t i) const;
  void crash(State& state, std::size_t i) const;
  void let_late_arrive(State& state) const;
  // Answers the clients whose changes may be acknowledged.
  void settle(State& state) const;
  // Ends all faults but a lie.
  void heal(State& state) const;
  // Lets time pass without faults.
  void work(State& state) const;

  [[nodiscard]] bool can_replicate(const State& state, std::size_t i) const;
  // Returns true if a head leads, and the other one, if it runs, follows.
  [[nodiscard]] bool is_settled(const State& state) const;

  [[nodiscard]] static TimePoint local(const State& state, std::size_t head) {
    return state.now - state.heads[head].behind;
  }

  [[nodiscard]] static bool is_up(const State& state, std::size_t head) {
    return state.heads[head].core && !state.heads[head].is_stopped;
  }

  // The ends of the links are the heads, then the witnesses.
  [[nodiscard]] static std::uint32_t link(std::size_t from, std::size_t to) {
    return 1U << (from < kHeads ? from * 8 + to : 16 + (from - kHeads) * 2 + to);
  }

  [[nodiscard]] static bool is_cut(const State& state, std::size_t from, std::size_t to) {
    return (state.cuts & link(from, to)) != 0;
  }

 private:
  void perform(State& state, std::size_t i, LeadershipActions actions) const;
  void ask(State& state, std::size_t i, const AskWitnesses& asks) const;
  void ask_witness(State& state, std::size_t i, std::size_t w, const LeaseRequest& request) const;
  LeaseReply answer(State& state, std::size_t w, const LeaseRequest& request) const;
  void take(State& state, std::size_t i, std::size_t w, const LeaseReply& reply) const;

  World world_;
};

}  // namespace score::gang::model
