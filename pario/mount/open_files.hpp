// Tracks the files that programs on this mount have open, and reports them to their servers, which
// keep those that lose their names on other nodes (docs/adr/0137). Every function may be called by
// several threads.
#pragma once

#include "pario/client/volume.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <sys/types.h>
#include <thread>
#include <unordered_map>
#include <vector>

namespace score::pario {

// A file that is removed on this mount while it is open is deleted at the last close.
class OpenFiles final : public OpenFileTracker {
 public:
  bool has_open_files() override;
  bool is_open(FileId id) override;
  bool keep(FileId id) override;
  void opened(FileId id);
  // Returns true if the file must be deleted now.
  bool closed(FileId id);
  std::vector<FileId> all();

 private:
  struct State {
    unsigned count = 0;
    bool is_removed = false;
  };

  std::mutex mutex_;
  std::unordered_map<FileId, State> files_;
};

OpenFiles& open_files();

// The file of a name that the kernel remembers may be gone. Then open(2) is answered with ESTALE,
// and this class remembers the thread. The kernel looks the name up again and opens the file in the
// same system call; if that file has lost its name in between, it is opened without one.
class RepeatedOpens {
 public:
  // After a refused open, the next one of the thread is in the same system call. A refused request
  // for attributes need not be followed by an open, so it is remembered briefly.
  static constexpr std::int64_t kCallMs = 60'000;
  static constexpr std::int64_t kBriefMs = 1'000;

  void add(pid_t thread, std::int64_t for_ms);
  bool contains(pid_t thread);
  bool take(pid_t thread);

 private:
  std::mutex mutex_;
  std::unordered_map<pid_t, std::int64_t> until_ms_;
};

RepeatedOpens& repeated_opens();

// Reports the open files to their servers from time to time. Each server has a thread, because one
// that does not answer must not delay the reports to the others.
class OpenFileReporter {
 public:
  // When `has_ended` returns true, requests stop waiting for servers that do not answer, so that
  // the threads of the session can end.
  OpenFileReporter(Volume& volume, std::function<bool()> has_ended);
  ~OpenFileReporter();
  OpenFileReporter(const OpenFileReporter&) = delete;
  OpenFileReporter& operator=(const OpenFileReporter&) = delete;

 private:
  struct Report {
    std::vector<FileId> files;  // to be reported
    std::thread thread;
  };

  void run();
  void send(std::uint32_t server);

  Volume& volume_;
  std::function<bool()> has_ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::map<std::uint32_t, Report> reports_;
  std::thread thread_;
};

}  // namespace score::pario
