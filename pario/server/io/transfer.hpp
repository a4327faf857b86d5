// A transfer is one request on its way through the server, with its memory.
#pragma once

#include "pario/core/message.hpp"
#include "pario/core/transaction_log.hpp"
#include "pario/store/data_files.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace score::pario {

class Connection;
class Replication;
class Session;
class TransactionRequests;

// An answer is the result of a request.
struct Answer {
  int error = 0;  // errno
  std::uint64_t number = 0;
  std::string body;
  std::uint32_t data_bytes = 0;  // of Transfer::data
  bool is_repeated = false;      // the change was carried out before
};

// Provides memory for the data of requests. Larger blocks are kept for the next requests, because
// fresh memory costs a page fault per 4 KB.
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
  Session* session = nullptr;  // null: the request came by TCP
  std::uint64_t client = 0;    // number of the connection
  std::string bytes;           // header and body; the request's names point into it
  Request request;
  Buffers::Buffer data;
  std::size_t memory = 0;  // bytes of `data`, counted until the reply is sent
  Answer answer;
  Replication* replication = nullptr;           // set for a change of which this server is the
                                                // leader
  std::uint64_t ticket = 0;                     // of the gate of `replication`
  TransactionRequests* transactions = nullptr;  // set if they have admitted it, as `plain`
  std::uint64_t plain = 0;
  std::vector<TransactionId> flushed{};  // a Sync: transactions that it puts on the disk
  std::int64_t waits_until_ms = 0;       // a Lock that waits; 0: it has not waited yet
  // A Copy that reads: it becomes a Write to this file and offset. 0: not a Copy.
  FileId copy_to = 0;
  std::uint64_t copy_offset = 0;
  std::array<FileId, 2> touched{};  // directories whose entries it has changed here
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
  put(bytes, reply);
  if (answer.error == 0) bytes += answer.body;
  return reply;
}

// Returns the bytes of data for which a request needs memory.
inline std::size_t memory_of(const Request& request) {
  if (takes_data(request.op)) return request.data_bytes;
  if (request.op == Op::ReadEntries) return 64 * std::size_t{1024};
  if (request.op == Op::GetValue) return kMaxValueBytes;
  if (request.op == Op::ListValues) return kMaxValueListBytes;
  std::size_t total = 0;
  for (const Extent& extent : request.extents) total += extent.length;
  return total;
}

}  // namespace score::pario
