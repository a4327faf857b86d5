// Simulates for tests the clients of transactions and plain writes over several parts, from a seed.
// An oracle checks atomicity and the order. A derived class implements the parts.
#pragma once

#include "pario/core/transactions.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace score::pario {

class TransactionsWorld {
 public:
  using Action = Transactions::Action;

  static constexpr FileId kFile = 1 << kHomeBits;
  static constexpr std::size_t kParts = 3;
  static constexpr std::uint64_t kPlaces = 3;  // per part
  static constexpr std::uint64_t kApart = 4096;

  TransactionsWorld(unsigned seed, bool is_stable) : random_(seed), is_stable_(is_stable) {}

  virtual ~TransactionsWorld() = default;

  void run(int transactions);
  // All servers run again.
  void settle();
  void check();

 protected:
  using Answer = std::function<void(int error, Outcome outcome)>;

  struct Key {
    std::size_t part = 0;
    std::uint64_t place = 0;

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // A client has this knowledge of a transaction, or of a plain write. The values are the writers'
  // numbers.
  struct History {
    std::map<Key, std::uint64_t> reads;  // of a plain write: the value that it has overwritten
    std::set<Key> writes;
    std::set<std::uint16_t> parts;
    int result = -1;  // errno; -1: the client vanished; EIO: it does not know
    bool is_plain = false;
  };

  struct Message {
    std::size_t part = 0;
    std::function<void(Transactions&, std::uint64_t token)> deliver;
    Answer answer;
    bool has_token = true;
  };

  // --- The parts, implemented by the derived class ---
  // Returns null while no server serves the part.
  virtual Transactions* machine(std::size_t part) = 0;
  // Returns a number that changes when the machine of this part is replaced.
  virtual std::uint32_t life(std::size_t part) = 0;
  // Carries out the actions of the machine.
  virtual void drain(std::size_t part) = 0;
  virtual std::uint64_t value(const Key& key) = 0;
  // Does a plain write of `id`. The derived class calls overwrite() just before it, then
  // end_plain(), at once or when the write is as safe as required. No client reads the value until
  // then.
  virtual void write(const Key& key, std::uint64_t id, std::uint64_t plain) = 0;
  // May cause a fault.
  virtual void disturb() = 0;
  virtual void tick_parts() = 0;

  virtual void heal() {}

  // Plain writes that are acknowledged are as durable as committed transactions.
  virtual bool has_plain_writes() const { return !is_stable_; }

  // --- For the derived class ---
  std::size_t pick(std::size_t count) { return random_() % count; }

  bool chance(unsigned one_of) { return random_() % one_of == 0; }

  static std::string bytes_of(std::uint64_t value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }

  bool is_stable() const { return is_stable_; }

  std::int64_t now() const { return now_; }

  void reply(const Action& action);
  // Sends a message of `part` to the part that the action names.
  void ask_or_push(std::size_t part, const Action& action);

  void applied(std::size_t part, TransactionId id) { applied_.insert({part, id}); }

  void overwrite(const Key& key, std::uint64_t id);
  // Records that a plain write is complete.
  void end_plain(const Key& key, std::uint64_t id, std::uint64_t plain);
  // A client that waits for an answer of the part sends its request again or gives up.
  void lose_requests(std::size_t part);

 private:
  struct Client {
    std::size_t waiting = 0;
    int error = 0;
    std::function<void(int)> next;
  };

  void begin(TransactionId id);
  void begin_plain(TransactionId id);
  std::uint16_t coordinator(TransactionId id);
  void staged(TransactionId id, int error);
  void prepare(TransactionId id, const std::vector<std::uint16_t>& parts,
               const std::function<void(int)>& next);
  void decide(TransactionId id);
  void finish(TransactionId id, bool commits);
  void undo(TransactionId id);
  void over(TransactionId id, int result);
  void vanish(TransactionId id);

  void group(TransactionId id, std::size_t count, std::function<void(int)> next) {
    groups_[id] = {count, 0, std::move(next)};
  }

  void arrived(TransactionId id, int error);
  void send(std::size_t part, std::function<void(Transactions&, std::uint64_t)> deliver);
  void ask(std::size_t part, TransactionId id,
           std::function<void(Transactions&, std::uint64_t)> deliver);
  void advance();
  void tick();
  void check_whole();
  void find_plain();
  void check_order();
  void check_last(const std::map<std::pair<Key, std::uint64_t>, TransactionId>& next);

  std::mt19937 random_;
  bool is_stable_;
  std::int64_t now_ = 0;
  std::uint64_t next_token_ = 1;
  std::vector<Message> messages_;
  std::map<std::uint64_t, Message> waiting_;
  std::map<TransactionId, Client> groups_;
  std::set<TransactionId> clients_;
  std::map<TransactionId, History> histories_;
  std::set<std::pair<std::size_t, TransactionId>> applied_;
  std::set<TransactionId> committed_;
};

}  // namespace score::pario
