// Accesses data of a server on the client's own node without the server: the client opens the data
// files itself, which belong to the same user. Reads take data that the kernel has in memory; other
// data is requested from the server, which reads ahead and has many requests at the disk at once.
// Writes need space that the server has reserved (a lease). In all unusual cases the request goes
// to the server.
#pragma once

#include "pario/core/message.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <sys/uio.h>
#include <unordered_map>
#include <vector>

namespace score::pario {

class DirectFiles {
 public:
  // Takes a Lease of the file at the server, which reserves `bytes`; `written` are the bytes since
  // the last one.
  using TakeLease = std::function<int(FileId id, std::uint64_t bytes, std::uint64_t written)>;

  // Returns null if the described directory is not on this node.
  static std::unique_ptr<DirectFiles> open(const DataPlace& place, TakeLease take_lease);
  ~DirectFiles();
  DirectFiles(const DirectFiles&) = delete;
  DirectFiles& operator=(const DirectFiles&) = delete;

  // Runs a Read or Write with the memory of its extents, one piece per extent. Returns true and the
  // fields of the server's reply if it is done, otherwise false. It may be called by any thread.
  bool run(const Request& request, const std::vector<iovec>& memory, Reply& reply);

 private:
  struct File;
  class Writing;
  using FilePtr = std::shared_ptr<File>;

  DirectFiles(int directory, TakeLease take_lease)
      : directory_(directory), take_lease_(std::move(take_lease)) {}

  FilePtr find(FileId id);
  void forget(FileId id);
  bool read(File& file, const Request& request, const std::vector<iovec>& memory);
  bool write(File& file, const Request& request, const std::vector<iovec>& memory);
  bool has_lease(File& file, FileId id, std::uint64_t bytes);

  int directory_;
  TakeLease take_lease_;
  std::mutex mutex_;  // protects files_
  std::unordered_map<FileId, FilePtr> files_;
};

}  // namespace score::pario
