#pragma once
// A LoggedFile is a small file of the state directory that both of two heads need. Its text is a
// setting of the store, so it travels with the log and is never lost once it is in force. The file
// is a copy of it, for a standby, whose store belongs to the disk thread. Thread: the loop's.

#include "scored/head/store/commit_log.hpp"

#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace score::head {

class LoggedFile {
 public:
  // Returns the new text. It is called when all earlier changes are in force.
  using Make = std::function<Result<std::string>()>;

  // `commits` must outlive the object, and the object must outlive its changes.
  LoggedFile(CommitLog& commits, const std::string& directory, std::string_view name);

  [[nodiscard]] const std::string& path() const { return path_; }

  // Puts the text of an existing file into the log: older releases kept it only in the file.
  void share();
  // Makes a change when those before are done. `done` has the receipt when the log has the new
  // text, or the error, after which nothing has changed. Errors: those of `make` and of the store,
  // Busy.
  void change(Make make, CommitLog::Confirmed done);

 private:
  struct Waiting {
    Make make;
    CommitLog::Confirmed done;
  };

  void begin();
  void finish(const Result<LogReceipt>& logged);
  void write(const std::string& text) const;

  CommitLog& commits_;
  std::string path_;
  std::string key_;
  std::deque<Waiting> waiting_;  // the first one is being stored
};

}  // namespace score::head
