// The PM side of a client's connection: requests come as messages; data is read from, and written
// to, the client's registered memory. It lives as long as its TCP connection, whose handshake has
// shown that the client has the key.
//
// The client keeps to kClientWindow requests in all, so what it has sent is always taken in; more
// than kServerWindow ends the connection.
#pragma once

#include "pario/channel/endpoints.hpp"
#include "pario/channel/pipe.hpp"
#include "pario/server/ring.hpp"
#include "pario/server/transfer.hpp"

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace score::pario {

// CLOCK_MONOTONIC.
std::int64_t monotonic_us();

class Session {
 public:
  enum class Fault { None, BadRequest, Broken };

  // What a session needs of its connection.
  class Owner {
   public:
    virtual bool admit(std::size_t memory) = 0;  // see ConnectionOwner
    virtual void release(std::size_t memory) = 0;
    virtual Buffers& buffers() = 0;
    virtual Connection* connection() = 0;
    virtual void execute(TransferPtr transfer) = 0;
    // Calls turn() soon.
    virtual void wake() = 0;
    // So many bytes of data went to or from the client's memory.
    virtual void moved(std::uint64_t bytes) = 0;

   protected:
    ~Owner() = default;
  };

  Session(EndpointPtr endpoint, Ring& ring, Owner& owner);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Does what there is to do, and arms the wait for more. The connection ends after a fault.
  Fault turn();
  // Of a request of this session.
  void reply(TransferPtr transfer);
  // Ends everything but the requests that run: these come back by reply().
  void close();

  // After close(): nothing refers to it any more.
  bool is_idle() const {
    return running_ == 0 && !peers_news_.is_polling && !device_news_.is_polling;
  }

  // When turn() is to be called though nothing came (CLOCK_MONOTONIC); less than 0: never.
  std::int64_t due_us() const { return is_armed_ ? due_us_ : -1; }

  // Transfers that wait for the client have not moved since the last call.
  bool is_stuck();

 private:
  // Data on its way between a transfer's memory and the client's.
  struct Move {
    struct Part {
      std::uint64_t here = 0;
      std::uint64_t there = 0;
      std::uint64_t length = 0;
    };

    TransferPtr transfer;
    std::vector<Part> parts;
    std::size_t next = 0;
    std::vector<pm::OperationId> open;
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
    int error = 0;
    bool is_registered = false;
  };

  struct Polled final : Completion {
    explicit Polled(Session& owner) : session(owner) {}

    void complete(int result) override;

    Session& session;
    bool is_polling = false;  // the ring watches the descriptor
  };

  void poll(Polled& polled, int fd);

  bool take_requests();
  bool take_one();
  void greet(const Request& request);
  bool admit_waiting();
  void start_move(TransferPtr transfer, std::uint64_t length);
  bool advance_moves();
  bool advance(Move& move);
  bool start_parts(Move& move);
  void finish_move(Move& move);
  void send_reply(TransferPtr transfer);
  void forget(Transfer& transfer);
  bool do_something();
  void arm();
  void disarm();

  EndpointPtr endpoint_;
  Ring& ring_;
  Owner& owner_;
  Pipe pipe_;
  Polled peers_news_{*this};   // memory of the node
  Polled device_news_{*this};  // packets
  std::string input_;
  std::deque<TransferPtr> waiting_;  // for memory
  std::list<Move> moves_;
  std::size_t requests_ = 0;  // taken and not answered
  std::size_t running_ = 0;   // of them: handed to execute()
  Fault fault_ = Fault::None;
  bool is_armed_ = false;  // prepare_sleep() has been called
  bool is_greeted_ = false;
  bool is_closed_ = false;
  bool has_moved_ = false;
  std::int64_t due_us_ = -1;
};

}  // namespace score::pario
