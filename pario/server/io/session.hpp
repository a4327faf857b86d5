// The PM side of a client's connection receives requests as messages. Data is read from, and
// written to, the client's registered memory. It lives as long as its TCP connection, whose
// handshake has shown that the client has the key.
//
// The client has at most kClientWindow requests in flight, so all its messages are always accepted;
// more than kServerWindow requests end the connection.
#pragma once

#include "pario/channel/endpoints.hpp"
#include "pario/channel/pipe.hpp"
#include "pario/server/io/endpoint_watch.hpp"
#include "pario/server/io/remote_moves.hpp"
#include "pario/server/io/ring.hpp"
#include "pario/server/io/transfer.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace score::pario {

// The time is that of CLOCK_MONOTONIC.
std::int64_t monotonic_us();

class Connection;

// Knows the connections that have a session over PM, and runs sessions with pending work.
class SessionQueue {
 public:
  // Returns false if there are too many sessions.
  bool admit(Connection& connection);

  void dismiss(Connection& connection) { std::erase(sessions_, &connection); }

  // Runs its session at the end of this turn.
  void wake(Connection& connection);
  void wake_due();
  void run();
  // Returns the time until a session has work even if nothing arrives; less than 0: for ever.
  std::int64_t timeout_us() const;
  void forget(Connection& connection);
  std::uint64_t open_count() const;

 private:
  std::vector<Connection*> sessions_;
  std::vector<Connection*> woken_;
};

class ConnectionOwner {
 public:
  enum class Refused { WrongKey, BadRequest, TooSlow };

  // Records that a client which tried PM uses TCP; `error`: the reason.
  virtual void fell_back(int error, const std::string& peer) = 0;
  // Counts bytes of data that were moved to or from a client's memory by PM.
  virtual void moved_by_pm(std::uint64_t bytes) = 0;

  virtual void execute(TransferPtr transfer) = 0;
  // Returns false if there is no memory now; the owner calls resume() later.
  virtual bool admit(Connection& connection, std::size_t memory) = 0;
  virtual void release(std::size_t memory) = 0;
  virtual Buffers& buffers() = 0;
  virtual void refused(Refused why, const std::string& peer) = 0;
  // No more data comes from the connection; requests of it that wait for others must be answered
  // now.
  virtual void closed(Connection& connection) = 0;
  virtual SessionQueue& sessions() = 0;
  // Nothing of the connection runs any more, so it may be deleted once the caller has returned.
  virtual void ended(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Session {
 public:
  enum class Fault { None, BadRequest, Broken };

  Session(EndpointPtr endpoint, Ring& ring, Connection& connection, ConnectionOwner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Handles all pending work, and arms the wait for more. The caller must end the connection after
  // a fault.
  Fault turn();
  // Replies to a request of this session.
  void reply(TransferPtr transfer);
  // Ends everything except the requests that run; these return through reply().
  void close();

  // Returns true after close() when nothing refers to the session any more.
  bool is_idle() const { return requests_ == 0 && !watch_.is_polling(); }

  // Returns when turn() must be called even if nothing has arrived (CLOCK_MONOTONIC); less than 0:
  // never.
  std::int64_t due_us() const { return watch_.due_us(); }

  // Returns true if transfers that wait for the client have not made progress since the last call.
  bool is_stuck();

 private:
  bool take_requests();
  bool take_one();
  void greet(const Request& request);
  bool admit_waiting();
  bool advance_moves();
  void finish_move(TransferPtr transfer, int error);
  void send_reply(TransferPtr transfer);
  void forget(Transfer& transfer);
  bool do_something();

  EndpointPtr endpoint_;  // null after close()
  Connection& connection_;
  ConnectionOwner& owner_;
  Pipe pipe_;
  EndpointWatch watch_;
  RemoteMoves moves_;
  std::string input_;
  std::deque<TransferPtr> waiting_;  // for memory
  std::size_t requests_ = 0;         // taken and not answered
  Fault fault_ = Fault::None;
  bool is_greeted_ = false;
  bool has_moved_ = false;
};

}  // namespace score::pario
