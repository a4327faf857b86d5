// One request on its way through the server, with its memory.
#pragma once

#include "pario/core/message.hpp"
#include "pario/core/transaction_log.hpp"
#include "pario/store/data_files.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace score::pario {

class Connection;
class Replication;
class Session;
class TransactionRequests;

// What a request is answered with.
struct Answer {
  int error = 0;  // errno
  std::uint64_t number = 0;
  std::string body;
  std::uint32_t data_bytes = 0;  // of Transfer::data
  bool is_repeated = false;      // of a change that was carried out before
};

// Memory for the data of requests. Larger blocks are kept for the next requests: fresh memory costs
// a page fault per 4 KB.
class Buffers {
 public:
  struct Give {
    Buffers* owner = nullptr;
    std::size_t size = 0;

    void operator()(char* memory) const { owner->give_back(memory, size); }
  };

  using Buffer = std::unique_ptr<char[], Give>;

  Buffer take(std::size_t size) {
    if (size > kSmall) {
      size = kMaxDataBytes;
      if (!free_.empty()) {
        char* memory = free_.back().release();
        free_.pop_back();
        return {memory, {this, size}};
      }
    }
    return {new char[size], {this, size}};
  }

 private:
  static constexpr std::size_t kSmall = 64 * 1024;
  static constexpr std::size_t kMostFree = 32;

  void give_back(char* memory, std::size_t size) {
    std::unique_ptr<char[]> owned(memory);
    if (size == kMaxDataBytes && free_.size() < kMostFree) free_.push_back(std::move(owned));
  }

  std::vector<std::unique_ptr<char[]>> free_;
};

struct Transfer {
  Connection* connection = nullptr;
  Session* session = nullptr;  // null: it came by TCP
  std::string bytes;           // header and body; the request's names point into it
  Request request;
  Buffers::Buffer data;
  std::size_t memory = 0;  // bytes of `data`, counted until the reply is sent
  Answer answer;
  Replication* replication = nullptr;           // a change of it, as the leader
  std::uint64_t ticket = 0;                     // of its gate
  TransactionRequests* transactions = nullptr;  // that have admitted it, as `plain`
  std::uint64_t plain = 0;
  std::vector<TransactionId> flushed{};  // a Sync: what it puts on the disk of transactions
};

using TransferPtr = std::unique_ptr<Transfer>;

// Appends the header and the body of a request's reply, without its data, to `bytes`. Returns the
// header.
inline Reply append_answer(const Transfer& transfer, std::string& bytes) {
  const Answer& answer = transfer.answer;
  Reply reply{.error = static_cast<std::uint32_t>(answer.error),
              .tag = transfer.request.tag,
              .number = answer.number};
  if (answer.error == 0) {
    reply.body_bytes = static_cast<std::uint32_t>(answer.body.size());
    reply.data_bytes = answer.data_bytes;
  }
  append_reply(reply, bytes);
  if (answer.error == 0) bytes += answer.body;
  return reply;
}

// Bytes of data that a request needs memory for.
inline std::size_t memory_of(const Request& request) {
  if (takes_data(request.op)) return request.data_bytes;
  if (request.op == Op::ReadEntries) return 64 * std::size_t{1024};
  std::size_t total = 0;
  for (const Extent& extent : request.extents) total += extent.length;
  return total;
}

}  // namespace score::pario
