// Two ranks that send each other numbered, hashed messages through pm.h and check what they get;
// each runs in a process and a network namespace of its own.
#pragma once

#include "bench/pm/harness.hpp"
#include "pm.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace score::pm::netns {

using bench::Shared;
using bench::TwoEnds;

// Ends of the tests' job, if this machine can have them; else null, and why in `reason`.
std::unique_ptr<TwoEnds> make_ends(bool with_network, std::string& reason);

// An address file for two ranks, gone with the object.
class AddressFile {
 public:
  // `device`: shmem, udp, ethernet, xdp (ethernet by AF_XDP) or ofi:PROVIDER. `is_swapped`: rank 0
  // is on the node of side 1. `extra`: more lines.
  AddressFile(const TwoEnds& ends, const std::string& device, bool is_swapped = false,
              const std::string& extra = "");
  ~AddressFile();
  AddressFile(const AddressFile&) = delete;
  AddressFile& operator=(const AddressFile&) = delete;

  std::string path() const { return directory_ / "job"; }

 private:
  std::filesystem::path directory_;
};

// What one side knows of the conversation, apart from its context.
struct Progress {
  std::uint32_t sent = 0;      // messages handed to PM
  std::uint32_t received = 0;  // and got from it
};

// One rank. Throws std::runtime_error if anything is not as it should be.
class Talker {
 public:
  Talker(const std::string& address_file, int rank);
  ~Talker();
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;

  operator pm_context*() const { return context_; }

  Progress progress;
  std::uint32_t longest = 1216;  // bytes of a message

  // Sends and receives until `until` messages went both ways, and all of them are acknowledged.
  void talk(std::uint32_t until);
  // Waits for the other end, which may need answers before it comes. `times` counts the meetings.
  void meet(Shared& shared, std::uint32_t times);
  // Sends while buffers last, receives at most `receives`, and does not wait for anything.
  void talk_a_little(std::uint32_t receives);

  // Leaves without a word, as a process does that is killed.
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
