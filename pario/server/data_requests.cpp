#include "pario/server/data_requests.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace score::pario {

// A part is one extent, or one fsync.
struct DataRequests::Part final : Completion {
  void complete(int result) override { owner->part_done(*this, result); }

  DataRequests* owner = nullptr;
  Running* running = nullptr;
  int fd = -1;
  std::uint64_t offset = 0;
  char* memory = nullptr;
  std::size_t left = 0;
};

struct DataRequests::Running {
  TransferPtr transfer;
  std::shared_ptr<DataFile> file;  // null: no data here
  std::uint64_t reserved = 0;
  std::vector<Part> parts;
  std::size_t open = 0;  // parts that are not done
};

void DataRequests::start(TransferPtr transfer) {
  const Request& request = transfer->request;
  const bool is_write = request.op == Op::Write;
  auto running = std::make_unique<Running>();
  Answer& answer = transfer->answer;
  answer.error = files_.get(request.id, false, running->file);
  if (answer.error == ENOENT) {
    answer.error = metadata_.check_exists(request.id);
    if (is_write && answer.error == 0) answer.error = files_.get(request.id, true, running->file);
  }
  if (is_write && answer.error == 0) {
    answer.error = files_.reserve(*running->file, request.extents, running->reserved);
  }
  running->transfer = std::move(transfer);
  if (answer.error != 0 || !running->file) return end(*running.release());
  running->parts.resize(request.extents.size());
  running->open = running->parts.size();
  char* memory = running->transfer->data.get();
  for (std::size_t i = 0; i < running->parts.size(); ++i) {
    Part& part = running->parts[i];
    part.owner = this;
    part.running = running.get();
    part.fd = running->file->fd.get();
    part.offset = request.extents[i].offset;
    part.left = request.extents[i].length;
    part.memory = memory;
    memory += part.left;
  }
  for (Part& part : running.release()->parts) submit(part);
}

void DataRequests::start_sync(TransferPtr transfer, int store_fd) {
  auto running = std::make_unique<Running>();
  Answer& answer = transfer->answer;
  answer.error = files_.get(transfer->request.id, false, running->file);
  if (answer.error == ENOENT) answer.error = metadata_.check_exists(transfer->request.id);
  // A directory has no data, but its entries can be put on the disk.
  if (answer.error == EISDIR) answer.error = 0;
  running->transfer = std::move(transfer);
  if (answer.error == 0 && running->file)
    running->parts.emplace_back().fd = running->file->fd.get();
  if (answer.error == 0 && store_fd >= 0) running->parts.emplace_back().fd = store_fd;
  running->open = running->parts.size();
  if (running->open == 0) return end(*running.release());
  for (Part& part : running->parts) {
    part.owner = this;
    part.running = running.get();
  }
  for (Part& part : running.release()->parts) submit(part);
}

void DataRequests::submit(Part& part) {
  io_uring_sqe* request = ring_.next(&part);
  const auto length = static_cast<unsigned>(part.left);
  const Op op = part.running->transfer->request.op;
  if (op == Op::Sync) {
    io_uring_prep_fsync(request, part.fd, IORING_FSYNC_DATASYNC);
  } else if (op == Op::Write) {
    io_uring_prep_write(request, part.fd, part.memory, length, part.offset);
  } else {
    io_uring_prep_read(request, part.fd, part.memory, length, part.offset);
  }
}

void DataRequests::part_done(Part& part, int result) {
  Running& running = *part.running;
  if (result == -EINTR || result == -EAGAIN) return submit(part);
  if (result > 0) {
    const std::size_t done = std::min(part.left, static_cast<std::size_t>(result));
    part.left -= done;
    part.offset += done;
    part.memory += done;
    if (part.left > 0) return submit(part);
  }
  if (result < 0) running.transfer->answer.error = -result;
  if (result == 0 && part.left > 0 && running.transfer->request.op == Op::Write) {
    running.transfer->answer.error = EIO;
  }
  zero_rest(part);
  if (--running.open == 0) end(running);
}

// Fills the memory beyond the end of the data here with zeros, because the file may be longer on
// other servers.
void DataRequests::zero_rest(const Part& part) {
  if (part.running->transfer->request.op == Op::Read && part.left > 0) {
    std::memset(part.memory, 0, part.left);
  }
}

// The answer has the size of the data here, and no data beyond its end.
void DataRequests::end_read(Running& running) {
  Answer& answer = running.transfer->answer;

  struct stat status {};

  if (running.file->is_removed || ::fstat(running.file->fd.get(), &status) != 0) {
    answer.error = running.file->is_removed ? ENOENT : errno;
    return;
  }
  answer.number = static_cast<std::uint64_t>(status.st_size);
  std::uint64_t before = 0;
  std::uint64_t used = 0;
  for (const Extent& extent : running.transfer->request.extents) {
    if (extent.offset < answer.number) {
      used = before + std::min(extent.length, answer.number - extent.offset);
    }
    before += extent.length;
  }
  answer.data_bytes = static_cast<std::uint32_t>(used);
  bytes_read_ += used;
}

void DataRequests::end(Running& running) {
  const std::unique_ptr<Running> owned(&running);
  Transfer& transfer = *running.transfer;
  const Op op = transfer.request.op;
  if (op == Op::Write && running.file) files_.settle(*running.file, running.reserved);
  if (op == Op::Write && transfer.answer.error == 0) bytes_written_ += transfer.request.data_bytes;
  if (op == Op::Read && running.file && transfer.answer.error == 0) end_read(running);
  finish_(std::move(running.transfer));
}

}  // namespace score::pario
