// Stores the log of transactions as a file of the server's directory. Appended bytes are in the
// kernel's cache at once; fsync(2) of fd() puts them on the disk.
#pragma once

#include "base/os/fd.hpp"
#include "pario/core/transaction_log.hpp"

#include <functional>
#include <string>

namespace score::pario {

// The int results of the functions are 0 or an errno value.
class TransactionFile {
 public:
  // Opens or creates the file, passes its records to `each`, and truncates it after the last valid
  // one.
  int open(int directory, const std::function<void(LogRecord)>& each);
  // Appends all of the record or nothing.
  int append(std::string_view record);
  // Replaces the whole log, atomically and on the disk.
  int replace(std::string_view log);

  std::uint64_t size() const { return size_; }

  int fd() const { return fd_.get(); }

 private:
  int read_all(std::string& log);

  UniqueFd directory_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

// Returns a number that identifies the running system and changes when the machine restarts; 0 if
// it is not known.
std::uint64_t boot_number();

}  // namespace score::pario
