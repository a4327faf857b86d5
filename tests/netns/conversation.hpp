// Two ranks send each other numbered, hashed messages through pm.h and check what they receive.
// Each runs in a process and a network namespace of its own.
#pragma once

#include "bench/pm/harness.hpp"
#include "pm.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace score::pm::netns {

using bench::Shared;
using bench::TwoEnds;

// Returns the ends of the tests' job, or null and a `reason` if this machine cannot have them.
std::unique_ptr<TwoEnds> make_ends(bool with_network, std::string& reason);

// Writes an address file for two ranks, which is removed with the object.
class AddressFile {
 public:
  // `device` is shmem, udp, ethernet or ofi:PROVIDER. With `is_swapped`, rank 0 is on the node of
  // side 1. `extra` has more lines.
  AddressFile(const TwoEnds& ends, const std::string& device, bool is_swapped = false,
              const std::string& extra = "");
  ~AddressFile();
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;

  std::string path() const { return directory_ / "job"; }

 private:
  std::filesystem::path directory_;
};

// Holds the state of one side of the conversation, apart from its context.
struct Progress {
  std::uint32_t sent = 0;      // messages passed to PM
  std::uint32_t received = 0;  // messages received from PM
};

// Runs one rank. Throws std::runtime_error if a check fails.
class Talker {
 public:
  Talker(const std::string& address_file, int rank);
  ~Talker();
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;

  operator pm_context*() const { return context_; }

  Progress progress;
  std::uint32_t longest = 1216;  // maximum bytes per message

  // Sends and receives until `until` messages went both ways, and all of them are acknowledged.
  void talk(std::uint32_t until);
  // Waits for the other end, which may need answers before it comes. `times` counts the meetings.
  void meet(Shared& shared, std::uint32_t times);
  // Sends while buffers are free, receives at most `receives`, and does not wait.
  void talk_a_little(std::uint32_t receives);

  // Leaves without notice, like a process that is killed.
  void abandon() { context_ = nullptr; }

 private:
  bool send_one();
  bool receive_one();

  pm_context* context_ = nullptr;
  std::uint32_t peer_;
};

void check(int error, const char* what);
void check(bool holds, const char* what);

}  // namespace score::pm::netns
