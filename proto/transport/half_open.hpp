// HalfOpen limits the connections of a listener that have not sent their first frame, proven by the
// key of their peer. When there are too many, the oldest one is closed, because it is the least
// likely to complete. So strangers cannot keep peers out.
#pragma once

#include "proto/transport/connection.hpp"

#include <cstddef>
#include <list>
#include <memory>
#include <sys/socket.h>
#include <utility>

namespace score::proto {

class HalfOpen {
 private:
  struct Entry {
    int fd = -1;
    std::shared_ptr<Connection> connection;  // null: in the handshake
  };

 public:
  explicit HalfOpen(std::size_t most) : most_(most) {}

  void set_limit(std::size_t most) { most_ = most; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  // A Place is the entry of one connection, until it is destroyed.
  class Place {
   public:
    Place(HalfOpen& owner, int fd)
        : owner_(owner), entry_(owner.entries_.insert(owner.entries_.end(), {fd, nullptr})) {}

    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    ~Place() { owner_.entries_.erase(entry_); }

    // Must be called when the descriptor belongs to a connection, which may close it.
    void set_connection(std::shared_ptr<Connection> connection) {
      entry_->connection = std::move(connection);
    }

   private:
    HalfOpen& owner_;
    std::list<Entry>::iterator entry_;
  };

  // Closes the oldest connection if there are too many for one more; its task removes its place.
  void make_room() {
    if (entries_.size() < most_) return;
    const Entry& oldest = entries_.front();
    if (oldest.connection) return oldest.connection->close();
    ::shutdown(oldest.fd, SHUT_RDWR);
  }

 private:
  std::size_t most_;
  std::list<Entry> entries_;  // oldest first
};

}  // namespace score::proto
