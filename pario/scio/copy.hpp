// Implements scio cp, which copies between files of this host and a volume.
#pragma once

#include "pario/client/pario.h"

#include <cstdint>
#include <string>

namespace score::pario {

struct CopyResult {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // SipHash of all bytes with a fixed key
};

// These functions throw std::string, an error text for users.
CopyResult copy_in(pario_volume* volume, const std::string& local, const std::string& path);
CopyResult copy_out(pario_volume* volume, const std::string& path, const std::string& local);

// Copies a file within the volume; the servers move the bytes. Returns their number.
std::uint64_t copy_inside(pario_volume* volume, const std::string& from, const std::string& to);

}  // namespace score::pario
