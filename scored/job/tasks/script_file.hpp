#pragma once
// The text of a batch script as a file of this node, for interpreters and programs that open it by
// its name: Python's multiprocessing, Perl's FindBin, scripts that read themselves.

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::shepherd {

// Exists, read-only and in a directory that only the user can enter, until the object is destroyed.
class ScriptFile {
 public:
  // In the first of /tmp and /var/tmp that takes it. `name`: as the user typed it; the file has its
  // last part. Also removes what shepherds of this user that were killed have left there. Errors:
  // errno codes.
  static base::Result<ScriptFile> create(std::uint64_t job, std::string_view name,
                                         std::string_view text);
  // The same in this directory alone.
  static base::Result<ScriptFile> create_in(const std::string& parent, std::uint64_t job,
                                            std::string_view name, std::string_view text);
  ScriptFile(ScriptFile&& other) noexcept;
  ScriptFile& operator=(ScriptFile&&) = delete;
  ~ScriptFile();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ScriptFile() = default;

  std::string directory_;  // empty: moved from
  std::string path_;
  base::UniqueFd lock_;  // of the directory: it is in use, also for systemd-tmpfiles(8)
};

// The program that the first line of the file names, and whatever else is there, without blanks at
// the ends; empty: the file cannot be read, or has no such line.
struct Interpreter {
  std::string path;
  std::string argument;  // the rest of the line, one word as for the kernel
};

Interpreter interpreter_of(const std::string& file);

}  // namespace score::shepherd
