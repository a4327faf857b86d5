#pragma once
// Stores the text of a batch script as a file of this node, for interpreters and programs that open
// it by its name: Python's multiprocessing, Perl's FindBin, scripts that read themselves.

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::shepherd {

// The file exists, read-only and in a directory that only the user can enter, until the object is
// destroyed.
class ScriptFile {
 public:
  // Creates the file in the first of /tmp, /var/tmp and `temporary` (the job's TMPDIR, or empty)
  // that accepts it. `name`: as the user typed it; the file has its last part. Also removes files
  // that killed shepherds of this user have left there. Errors: errno codes.
  static base::Result<ScriptFile> create(std::uint64_t job, std::string_view name,
                                         std::string_view text, std::string_view temporary);
  // Does the same in this directory only.
  static base::Result<ScriptFile> create_in(const std::string& parent, std::uint64_t job,
                                            std::string_view name, std::string_view text);
  // Creates the file again where the script of a saved job was. Errors: errno codes; Busy, if that
  // job still runs here.
  static base::Result<ScriptFile> create_again(const std::string& path, std::string_view text);
  ScriptFile(ScriptFile&& other) noexcept;
  ScriptFile& operator=(ScriptFile&&) = delete;
  ~ScriptFile();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ScriptFile() = default;

  std::string directory_;  // empty: moved from
  std::string path_;
  base::UniqueFd lock_;  // of the directory: shows that it is in use, also to systemd-tmpfiles(8)
};

// Holds the program that the first line of the file names, and the rest of that line without blanks
// at the ends. Both are empty if the file cannot be read, or has no such line.
struct Interpreter {
  std::string path;
  std::string argument;  // the rest of the line, which the kernel passes as one word
};

Interpreter interpreter_of(const std::string& file);

}  // namespace score::shepherd
