#include "tests/netns/conversation.hpp"

#include "pmlib/wire/siphash.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <unistd.h>

namespace score::pm::netns {

namespace {

struct Stamp {  // at the start of every message
  std::uint64_t hash;
  std::uint32_t source, number;
};

std::size_t length_of(std::uint32_t number, std::uint32_t longest) {
  return sizeof(Stamp) + number * 37 % (longest - sizeof(Stamp));
}

std::uint64_t hash_of(const void* message, std::size_t length) {
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(message), length);
  return SipHash({3, 4}).finish(bytes.subspan(sizeof(std::uint64_t)));
}

}  // namespace

void check(int error, const char* what) {
  if (error != 0) throw std::runtime_error(std::string(what) + ": " + pm_strerror(error));
}

void check(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("not true: ") + what);
}

std::unique_ptr<TwoEnds> make_ends(bool with_network, std::string& reason) {
  if (with_network && geteuid() != 0) {
    reason = "needs root for network namespaces";
    return nullptr;
  }
  try {
    return std::make_unique<TwoEnds>(with_network);
  } catch (const std::exception& e) {
    reason = e.what();
    return nullptr;
  }
}

AddressFile::AddressFile(const TwoEnds& ends, const std::string& device, bool is_swapped,
                         const std::string& extra) {
  char name[] = "/tmp/pm-netns-XXXXXX";
  directory_ = mkdtemp(name);
  std::ofstream out(path());
  const std::string kind = device.substr(0, device.find(':'));
  out << "key 1f2e3d4c\n" << extra;
  if (kind == "shmem") {
    out << "device none\nshmem " << (directory_ / "context").string() << "\n";
  } else {
    out << "device " << kind << "\n";
  }
  if (kind == "ethernet") out << "interface " << TwoEnds::kInterface << "\n";
  if (kind == "ofi") out << "provider " << device.substr(4) << "\n";
  for (int rank : {0, 1}) {
    const int side = is_swapped ? 1 - rank : rank;
    out << "rank " << rank << " node" << (kind == "shmem" ? 0 : side) << " ";
    if (kind == "ethernet") {
      out << ends.mac(side) << "\n";
    } else {
      out << ends.address(side) << ":" << 4100 + rank << "\n";
    }
  }
}

AddressFile::~AddressFile() {
  std::filesystem::remove_all(directory_);
}

Talker::Talker(const std::string& address_file, int rank)
    : peer_(static_cast<std::uint32_t>(1 - rank)) {
  check(pm_open_file(address_file.c_str(), static_cast<std::uint32_t>(rank), &context_, nullptr, 0),
        "pm_open_file");
}

Talker::~Talker() {
  pm_close(context_);
}

bool Talker::send_one() {
  const std::size_t length = length_of(progress.sent, longest);
  void* buffer = nullptr;
  const int error = pm_get_send_buffer(context_, peer_, &buffer, length);
  if (error == PM_ENOBUFS) return false;
  check(error, "pm_get_send_buffer");
  Stamp stamp{0, pm_self(context_), progress.sent};
  std::memset(buffer, static_cast<int>(progress.sent % 251), length);
  std::memcpy(buffer, &stamp, sizeof stamp);
  stamp.hash = hash_of(buffer, length);
  std::memcpy(buffer, &stamp, sizeof stamp);
  if (const int full = pm_send(context_); full == PM_ENOBUFS) {
    pm_cancel(context_);
    return false;
  } else {
    check(full, "pm_send");
  }
  ++progress.sent;
  return true;
}

bool Talker::receive_one() {
  pm_message message;
  const int error = pm_receive(context_, &message);
  if (error == PM_EAGAIN) return false;
  check(error, "pm_receive");
  Stamp stamp;
  check(message.length == length_of(progress.received, longest), "messages arrive whole");
  std::memcpy(&stamp, message.data, sizeof stamp);
  check(stamp.number == progress.received, "exactly once and in order");
  check(stamp.source == peer_ && message.source == peer_, "from the rank that sent it");
  check(stamp.hash == hash_of(message.data, message.length), "with the contents that were sent");
  pm_release_receive_buffer(context_, &message);
  ++progress.received;
  return true;
}

void Talker::talk(std::uint32_t until) {
  while (progress.sent < until || progress.received < until || pm_quiet(context_) == 0) {
    for (int i = 0; i < 8 && progress.sent < until && send_one(); ++i) {
    }
    while (receive_one()) {
    }
    pm_wait(context_, 2000);
  }
  // The other end may still wait for an acknowledgement.
  for (int i = 0; i < 200; ++i) pm_wait(context_, 1000);
}

void Talker::meet(Shared& shared, std::uint32_t times) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < 2 * times) pm_wait(context_, 1000);
}

void Talker::talk_a_little(std::uint32_t receives) {
  for (int turn = 0; turn < 200; ++turn) {
    while (send_one()) {
    }
    for (; receives > 0 && receive_one(); --receives) {
    }
    pm_progress(context_);
  }
}

}  // namespace score::pm::netns
