// A transfer is split into pieces by server. The pieces of a server form requests of at most
// kMaxDataBytes, and all requests of all servers run at once.
//
// The servers know only their own part of the file. If a read returns less than requested, the rest
// is a hole or lies beyond the end: only then is the file size requested. Bytes that did not exist
// when they were read, but lie before that size, were written in the meantime, so they are read
// once more.
#include "pario/client/volume.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace score::pario {

Volume::Transfer::~Transfer() {
  static_cast<void>(wait());  // replies are written to memory of this object and of the caller
}

void Volume::Transfer::start(const Span& span) {
  std::vector<Piece> pieces;
  for (const Extent& extent : span.extents) {
    if (extent.length == 0) continue;
    if (!is_valid(extent)) {
      error_ = op_ == Op::Write ? EFBIG : EINVAL;
      return;
    }
    split(volume_.striping(file_.id), extent, total_, pieces);
    total_ += extent.length;
    extents_.push_back(extent);
  }
  if (op_ == Op::Write) error_ = volume_.make_wide(file_, pieces);
  if (error_ != 0) return;
  // The pieces are grouped by server, in the order of the file.
  std::ranges::stable_sort(pieces, {}, &Piece::server);
  for (const Piece& piece : pieces) add(piece, span.memory);
  issue();
}

void Volume::Transfer::add(const Piece& piece, char* memory) {
  for (std::uint64_t done = 0; done < piece.length;) {
    std::uint64_t used = 0;
    Call* call = calls_.empty() || servers_.back() != piece.server ? nullptr : calls_.back().get();
    if (call != nullptr) {
      for (const Extent& extent : call->request.extents) used += extent.length;
    }
    if (call == nullptr || used == kMaxDataBytes || call->request.extents.size() == kMaxExtents) {
      call = calls_.emplace_back(std::make_unique<Call>()).get();
      servers_.push_back(piece.server);
      call->request = {.op = op_, .id = file_.id};
      used = 0;
    }
    const std::uint64_t length = std::min(piece.length - done, kMaxDataBytes - used);
    call->request.extents.push_back({piece.offset + done, length});
    call->memory.push_back({memory + piece.buffer + done, length});
    if (op_ == Op::Write) call->request.data_bytes += static_cast<std::uint32_t>(length);
    done += length;
  }
}

void Volume::Transfer::issue() {
  // The requests go to the servers in turn, so that all of them work.
  std::vector<std::size_t> order(calls_.size());
  std::vector<std::size_t> count(volume_.servers());
  std::vector<std::size_t> turn(calls_.size());
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    order[i] = i;
    turn[i] = count[servers_[i]]++;
  }
  std::ranges::stable_sort(order, {}, [&turn](std::size_t i) { return turn[i]; });
  // This thread copies data of this node while other servers work.
  std::vector<std::size_t> near;
  for (const std::size_t i : order) {
    if (volume_.links_[servers_[i]]->is_near()) {
      near.push_back(i);
    } else {
      volume_.links_[servers_[i]]->start(*calls_[i]);
    }
  }
  for (const std::size_t i : near) {
    Link& link = *volume_.links_[servers_[i]];
    if (!link.run_directly(*calls_[i])) link.start(*calls_[i]);
  }
}

int Volume::Transfer::finish_all() {
  int error = 0;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    volume_.links_[servers_[i]]->finish(*calls_[i]);
    if (error == 0) error = calls_[i]->error;
  }
  return error;
}

ssize_t Volume::Transfer::wait() {
  if (is_done_) return result_;
  is_done_ = true;
  if (error_ == 0) error_ = finish_all();
  if (error_ != 0) {
    result_ = -error_;
  } else {
    result_ = op_ == Op::Write ? static_cast<ssize_t>(total_) : end_read();
  }
  return result_;
}

ssize_t Volume::Transfer::end_read() {
  bool is_short = false;
  std::uint64_t last_size = 0;
  for (const auto& call : calls_) {
    std::size_t there = call->reply.data_bytes;
    for (std::size_t i = 0; i < call->memory.size(); ++i) {
      const iovec& piece = call->memory[i];
      const std::size_t part = std::min(there, piece.iov_len);
      if (part < piece.iov_len) {
        std::memset(static_cast<char*>(piece.iov_base) + part, 0, piece.iov_len - part);
      }
      there -= part;
      const Extent& extent = call->request.extents[i];
      if (extent.offset + extent.length > call->reply.number) is_short = true;
    }
    last_size = std::max(last_size, call->reply.number);
  }
  if (!is_short) return static_cast<ssize_t>(total_);
  bool needs_more = false;
  if (volume_.spread(file_.id) == 1)
    return static_cast<ssize_t>(count_before(last_size, needs_more));
  FileStatus found;
  if (const int error = volume_.status(file_.id, found, true)) return -error;
  const std::uint64_t count = count_before(found.size, needs_more);
  if (needs_more) {
    issue();
    if (const int error = finish_all()) return -error;
    for (const auto& call : calls_) {
      std::size_t there = call->reply.data_bytes;
      for (const iovec& piece : call->memory) {
        const std::size_t part = std::min(there, piece.iov_len);
        std::memset(static_cast<char*>(piece.iov_base) + part, 0, piece.iov_len - part);
        there -= part;
      }
    }
  }
  return static_cast<ssize_t>(count);
}

std::uint64_t Volume::Transfer::count_before(std::uint64_t size, bool& needs_more) const {
  std::uint64_t count = 0;
  for (const Extent& extent : extents_) {
    count += extent.offset >= size ? 0 : std::min(extent.length, size - extent.offset);
  }
  const Striping striping = volume_.striping(file_.id);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const std::uint64_t there = local_size(striping, servers_[i], size);
    for (const Extent& extent : calls_[i]->request.extents) {
      if (std::min(extent.offset + extent.length, there) > calls_[i]->reply.number &&
          there > extent.offset) {
        needs_more = true;
      }
    }
  }
  return count;
}

}  // namespace score::pario
