// To fill the other replica, the leader sends all rows of its store and the state of its
// transactions, and from then on forwards all changes. Meanwhile it copies data files, range by
// range, through the gate. It copies all files, or, if it has seen all changes since the other one
// followed, only those that have changed.
#include "base/os/log.hpp"
#include "pario/core/bytes.hpp"
#include "pario/server/replication.hpp"

#include <algorithm>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace score::pario {
namespace {

constexpr std::size_t kRangeBytes = kMaxDataBytes;
constexpr Extent kEntireFile{0, kMaxOffset};

}  // namespace

// Returns true if the other replica was a follower, and has missed only the noted files.
bool Replication::is_quick() const {
  return missed_since_ != 0 && peer_.mode == ReplicaMode::Following &&
         peer_.number == missed_since_;
}

void Replication::start_repair() {
  const bool is_short = is_quick();
  log_notice("Started to repair the other replica", kv("part", place_.part),
             kv("server", place_.peer),
             kv("files", is_short ? std::to_string(missed_.size()) : "all"));
  forwarder_->reset();
  copying_ = std::make_unique<Copying>();
  sequence_ = 0;
  const auto done = [this](int error) {
    if (error != 0) static_cast<void>(is_delivered(error));
  };
  const Request begin{.op = Op::FillBegin,
                      .id = kRootId,
                      .part = place_.part + 1,
                      .number = view().number | (is_short ? kQuick : 0)};
  forwarder_->send(begin, nullptr, nullptr, done);
  if (is_short) send_dropped();
  send_tables();
  send_transactions();
  std::vector<FileId> files;
  if (is_short) {
    files.assign(missed_.begin(), missed_.end());
  } else if (parts_.files.list(files) != 0) {
    return stop_repair();
  }
  missed_since_ = 0;  // until the other one follows again; if this fails it is filled as a whole
  copying_->files.assign(files.begin(), files.end());
  repaired_files_ = 0;
  copy_next();
}

void Replication::send_dropped() {
  const auto keeps = std::make_shared<std::string>();
  for (const FileId id : missed_) put(*keeps, id);
  if (keeps->empty()) return;
  const Request request{.op = Op::FillTable,
                        .id = kRootId,
                        .part = place_.part + 1,
                        .mode = kDroppedFiles,
                        .data_bytes = static_cast<std::uint32_t>(keeps->size())};
  forwarder_->send(request, keeps->data(), keeps, [this](int error) {
    if (error != 0) static_cast<void>(is_delivered(error));
  });
}

void Replication::send_tables() {
  const auto done = [this](int error) {
    if (error != 0) static_cast<void>(is_delivered(error));
  };
  const int error = parts_.store.dump([&](std::uint32_t table, std::string rows) {
    const auto keeps = std::make_shared<std::string>(std::move(rows));
    const Request request{.op = Op::FillTable,
                          .id = kRootId,
                          .part = place_.part + 1,
                          .mode = table,
                          .data_bytes = static_cast<std::uint32_t>(keeps->size())};
    forwarder_->send(request, keeps->data(), keeps, done);
  });
  if (error != 0) fault_ = error;
}

void Replication::send_transactions() {
  for (std::string& record : parts_.transactions.begin_forwarding()) {
    forward_record(std::move(record), [](bool) {});
  }
}

// Copies one range, or the end of a file, at a time.
void Replication::copy_next() {
  if (!copying_) return;
  Copying& copying = *copying_;
  while (copying.file == 0) {
    if (copying.files.empty()) return end_repair();
    const FileId file = copying.files.front();
    copying.files.pop_front();
    if (parts_.files.get(file, false, copying.open) != 0) continue;  // removed in the meantime
    copying.file = file;
    copying.offset = 0;
  }
  const int fd = copying.open->fd.get();
  const off_t begin = ::lseek(fd, static_cast<off_t>(copying.offset), SEEK_DATA);
  if (begin < 0 || copying.open->is_removed) return end_file();
  const off_t hole = ::lseek(fd, begin, SEEK_HOLE);
  const auto length = hole > begin ? static_cast<std::uint64_t>(hole - begin) : kRangeBytes;
  copy_range({static_cast<std::uint64_t>(begin), std::min<std::uint64_t>(length, kRangeBytes)});
}

void Replication::copy_range(const Extent& extent) {
  Copying& copying = *copying_;
  copying.offset = extent.offset + extent.length;
  const RangeGate::Ticket ticket = gate_.reserve();
  gate_.enter(ticket, copying.file, extent, [this, extent, ticket] {
    if (!copying_) return gate_.leave(ticket);
    if (copying_->open->is_removed) {
      gate_.leave(ticket);
      return copy_next();
    }
    const auto data = std::make_shared<std::string>(extent.length, '\0');
    const ssize_t got = ::pread(copying_->open->fd.get(), data->data(), data->size(),
                                static_cast<off_t>(extent.offset));
    if (got <= 0) {  // truncated in the meantime
      gate_.leave(ticket);
      return copy_next();
    }
    const Request request{.op = Op::Write,
                          .id = copying_->file,
                          .extents = {{extent.offset, static_cast<std::uint64_t>(got)}},
                          .data_bytes = static_cast<std::uint32_t>(got)};
    forward(request, data->data(), data, [this, ticket](int error) {
      // A file whose home is here may have been removed in the meantime.
      const bool is_copied = error == 0 || error == ENOENT || is_delivered(error);
      gate_.leave(ticket);
      if (is_copied) copy_next();
    });
  });
}

// Copies a file's size, in case of a hole at its end, and its time.
void Replication::end_file() {
  const FileId file = copying_->file;
  const RangeGate::Ticket ticket = gate_.reserve();
  gate_.enter(ticket, file, kEntireFile, [this, file, ticket] {
    struct stat status {};

    if (!copying_ || copying_->open->is_removed ||
        ::fstat(copying_->open->fd.get(), &status) != 0) {
      gate_.leave(ticket);
      if (copying_) copying_->file = 0;
      return copy_next();
    }
    forward({.op = Op::Truncate, .id = file, .number = static_cast<std::uint64_t>(status.st_size)},
            nullptr, nullptr, [](int) {});
    // A Truncate resets the reserved end, so it is sent again.
    std::uint64_t end = 0;
    if (parts_.store.get_end(file, end) == 0 && end > 0) {
      forward({.op = Op::Reserve, .id = file, .other = end}, nullptr, nullptr, [](int) {});
    }
    const std::int64_t modified =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    Request request{.op = Op::SetTime, .id = file};
    request.mode = kSetModified;
    request.number = static_cast<std::uint64_t>(modified);
    request.forwarded.time_ns = wall_ns();
    forward(request, nullptr, nullptr, [this, ticket](int error) {
      const bool is_copied = error == 0 || error == ENOENT || is_delivered(error);
      gate_.leave(ticket);
      if (!copying_) return;
      copying_->file = 0;
      ++repaired_files_;
      if (is_copied) copy_next();
    });
  });
}

// The leader's view is stored first. Once the other replica follows it can take over, so this
// server must ask it after a restart.
void Replication::end_repair() {
  copying_.reset();
  const std::uint64_t number = view().number + 1;
  replica_->repaired(number);
  run_actions();
  const Request end{.op = Op::FillEnd, .id = kRootId, .part = place_.part + 1, .number = number};
  forwarder_->send(end, nullptr, nullptr, [this, number](int error) {
    if (error != 0) {
      static_cast<void>(is_delivered(error));
      return;
    }
    missed_.clear();
    missed_since_ = number;
    log_notice("Repaired the other replica", kv("part", place_.part), kv("files", repaired_files_));
  });
}

void Replication::stop_repair() {
  copying_.reset();
}

}  // namespace score::pario
