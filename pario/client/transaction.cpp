#include "pario/client/transaction.hpp"

#include "pario/core/bytes.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/random.h>
#include <tuple>

namespace score::pario {
namespace {

constexpr int kMostPauseMs = 50;
constexpr int kMostWaitMs = 10'000;  // for a transaction that a different client has left in doubt

}  // namespace

Volume::Transaction::Transaction(Volume& volume, bool is_stable)
    : volume_(volume), is_stable_(is_stable) {
  while (id_ == 0 && ::getrandom(&id_, sizeof id_, 0) == sizeof id_) {
  }
}

ssize_t Volume::Transaction::read(const OpenFile& file, char* memory, const Extent& extent) {
  if (is_over_ || !is_valid(extent)) return -EINVAL;
  if (reads_.size() >= kMaxAccesses) return -E2BIG;
  std::vector<Piece> pieces;
  split(volume_.striping(file.id), extent, 0, pieces);
  for (Piece piece : pieces) {
    while (piece.length > 0) {
      Piece part = piece;
      part.length = std::min<std::uint64_t>(piece.length, kMaxDataBytes);
      if (const int error = read_piece(file.id, part, memory)) return -error;
      piece.offset += part.length;
      piece.buffer += part.length;
      piece.length -= part.length;
    }
  }
  // The transaction's own writes are applied in their order.
  for (const Written& written : writes_) {
    const std::uint64_t begin = std::max(written.offset, extent.offset);
    const std::uint64_t end =
        std::min(written.offset + written.data.size(), extent.offset + extent.length);
    if (written.file != file.id || begin >= end) continue;
    std::memcpy(memory + (begin - extent.offset), written.data.data() + (begin - written.offset),
                end - begin);
  }
  return static_cast<ssize_t>(extent.length);
}

int Volume::Transaction::read_piece(FileId file, const Piece& piece, char* memory) {
  const Extent extent{piece.offset, piece.length};
  Call call;
  int waited = 0;
  for (int pause = 1;; pause = std::min(pause * 2, kMostPauseMs)) {
    call.request = {.op = Op::Read, .flags = kStamped, .id = file, .extents = {extent}};
    call.memory = {{memory + piece.buffer, piece.length}};
    const int error = volume_.call(piece.server, call);
    if (error == 0) break;
    if (error != EAGAIN || waited > kMostWaitMs) return error;
    ::poll(nullptr, 0, pause);
    waited += pause;
  }
  std::uint64_t stamp = 0;
  Cursor cursor{call.body};
  cursor.take(stamp);
  if (!cursor.is_done()) return EPROTO;
  std::memset(memory + piece.buffer + call.reply.data_bytes, 0,
              piece.length - call.reply.data_bytes);
  reads_.push_back({piece.server, {file, extent, stamp}});
  return 0;
}

ssize_t Volume::Transaction::write(const OpenFile& file, const char* bytes, const Extent& extent) {
  if (is_over_) return -EINVAL;
  if (!is_valid(extent)) return -EFBIG;
  if (written_bytes_ + extent.length > kMaxTransactionBytes) return -E2BIG;
  written_bytes_ += extent.length;
  writes_.push_back({file.id, extent.offset, std::string(bytes, extent.length)});
  return static_cast<ssize_t>(extent.length);
}

Call& Volume::Transaction::add(Calls& calls, std::uint32_t server, Request request) {
  calls.emplace_back(server, std::make_unique<Call>());
  calls.back().second->request = std::move(request);
  return *calls.back().second;
}

// Adds a message to that server, unless the last one has room and the same subject. Returns the
// message.
Call& Volume::Transaction::add_stage(Calls& calls, std::uint32_t server, FileId file,
                                     std::uint64_t stamp) {
  if (!calls.empty() && calls.back().first == server) {
    Call& last = *calls.back().second;
    const bool is_same = last.request.id == file && last.request.other == stamp;
    if (is_same && last.request.extents.size() < kMaxExtents) return last;
  }
  return add(calls, server,
             {.op = Op::StageTransaction,
              .id = file,
              .mode = stages_[server]++,
              .number = id_,
              .other = stamp});
}

void Volume::Transaction::add_reads(Calls& calls) {
  const auto key = [](const auto& read) {
    return std::tuple(read.first, read.second.file, read.second.stamp);
  };
  std::ranges::stable_sort(reads_, {}, key);
  for (const auto& [server, read] : reads_) {
    Call* call = &add_stage(calls, server, read.file, read.stamp);
    std::uint64_t used = 0;
    for (const Extent& extent : call->request.extents) used += extent.length;
    if (used + read.extent.length > kMaxDataBytes) {
      call = &add(calls, server,
                  {.op = Op::StageTransaction,
                   .id = read.file,
                   .mode = stages_[server]++,
                   .number = id_,
                   .other = read.stamp});
    }
    call->request.extents.push_back(read.extent);
  }
}

int Volume::Transaction::add_writes(Calls& calls) {
  for (Written& written : writes_) {
    std::vector<Piece> pieces;
    const Extent extent{written.offset, written.data.size()};
    split(volume_.striping(written.file), extent, 0, pieces);
    OpenFile file{written.file, false};
    if (const int error = volume_.make_wide(file, pieces)) return error;
    for (Piece piece : pieces) {
      while (piece.length > 0) {
        const std::uint64_t length = std::min<std::uint64_t>(piece.length, kMaxDataBytes);
        Call& call = add(calls, piece.server,
                         {.op = Op::StageTransaction,
                          .id = written.file,
                          .mode = stages_[piece.server]++,
                          .number = id_,
                          .extents = {{piece.offset, length}},
                          .data_bytes = static_cast<std::uint32_t>(length)});
        call.memory = {{written.data.data() + piece.buffer, length}};
        piece.offset += length;
        piece.buffer += length;
        piece.length -= length;
      }
    }
  }
  return 0;
}

// Starts all calls and waits for all. Returns the first error.
int Volume::Transaction::run(Calls& calls) {
  for (auto& [server, call] : calls) volume_.links_[server]->start(*call);
  int error = 0;
  for (auto& [server, call] : calls) {
    volume_.links_[server]->finish(*call);
    if (error == 0) error = call->error;
  }
  return error;
}

int Volume::Transaction::stage() {
  Calls calls;
  add_reads(calls);
  if (const int error = add_writes(calls)) return error;
  return run(calls);
}

int Volume::Transaction::prepare(std::span<const std::uint16_t> servers) {
  Calls calls;
  std::vector<std::uint16_t> all;
  for (const auto& [server, count] : stages_) all.push_back(static_cast<std::uint16_t>(server));
  for (const std::uint16_t server : servers) {
    add(calls, server,
        {.op = Op::PrepareTransaction,
         .flags = is_stable_ ? kStable : std::uint16_t{0},
         .id = kRootId,
         .mode = stages_[server],
         .number = id_,
         .other = all[id_ % all.size()],
         .servers = all});
  }
  return run(calls);
}

int Volume::Transaction::finish(std::span<const std::uint16_t> servers, bool commits) {
  Calls calls;
  for (const std::uint16_t server : servers) {
    add(calls, server,
        {.op = Op::FinishTransaction,
         .id = kRootId,
         .number = id_,
         .other = std::uint64_t{commits ? 1U : 0U}});
  }
  return run(calls);
}

int Volume::Transaction::decide() {
  std::vector<std::uint16_t> others;
  for (const auto& [server, count] : stages_) others.push_back(static_cast<std::uint16_t>(server));
  const std::uint16_t coordinator = others[id_ % others.size()];
  // A single server decides when it prepares. After a connection error its decision is unknown.
  int error = prepare(std::span(&coordinator, 1));
  if (others.size() == 1) return error;
  std::erase(others, coordinator);
  if (error == 0) error = prepare(others);
  if (error == 0) {
    Calls calls;
    add(calls, coordinator, {.op = Op::DecideTransaction, .id = kRootId, .number = id_});
    error = run(calls);
    if (error == EIO) return EIO;  // the servers resolve it
    if (error == 0) {
      // The coordinator informs servers that the client cannot reach.
      if (finish(others, true) == 0) {
        Calls end;
        add(end, coordinator, {.op = Op::EndTransaction, .id = kRootId, .number = id_});
        static_cast<void>(run(end));
      }
      return 0;
    }
  }
  others.push_back(coordinator);
  static_cast<void>(finish(others, false));
  return error == ECANCELED ? EAGAIN : error == EIO ? ECONNABORTED : error;
}

int Volume::Transaction::commit() {
  if (is_over_) return EINVAL;
  is_over_ = true;
  if (id_ == 0) return EIO;
  const int error = stage();
  if (error == 0) return stages_.empty() ? 0 : decide();
  std::vector<std::uint16_t> servers;
  for (const auto& [server, count] : stages_) servers.push_back(static_cast<std::uint16_t>(server));
  static_cast<void>(finish(servers, false));
  return error == EIO ? ECONNABORTED : error;
}

}  // namespace score::pario
