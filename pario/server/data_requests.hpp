// Handles Read, Write and Sync. Each extent is one request of io_uring, and all of them run at
// once.
#pragma once

#include "pario/server/io/ring.hpp"
#include "pario/server/metadata.hpp"

#include <functional>

namespace score::pario {

class DataRequests {
 public:
  using Finish = std::function<void(TransferPtr)>;

  // `finish` receives each transfer with its answer.
  DataRequests(Ring& ring, DataFiles& files, Metadata& metadata, Finish finish)
      : ring_(ring), files_(files), metadata_(metadata), finish_(std::move(finish)) {}

  // Starts a Read or Write.
  void start(TransferPtr transfer);
  // Starts a Sync; all changes of the store must be committed. `store_fd` < 0: the store is already
  // on the disk.
  void start_sync(TransferPtr transfer, int store_fd);

  std::uint64_t bytes_read() const { return bytes_read_; }

  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  struct Part;
  struct Running;

  void submit(Part& part);
  void part_done(Part& part, int result);
  void end(Running& running);
  static void zero_rest(const Part& part);
  void end_read(Running& running);

  Ring& ring_;
  DataFiles& files_;
  Metadata& metadata_;
  Finish finish_;
  std::uint64_t bytes_read_ = 0;
  std::uint64_t bytes_written_ = 0;
};

}  // namespace score::pario
