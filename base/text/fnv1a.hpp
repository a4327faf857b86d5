#pragma once
// FNV-1a in 64 bits is a digest that recognises equal contents. Use it only where no one has a
// reason to forge one.

#include <cstdint>
#include <string_view>

namespace score::inline base {

constexpr std::uint64_t kFnv1aBegin = 0xcbf29ce484222325U;

// Returns the digest after `bytes`; `hash` is the digest of the bytes before them.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = kFnv1aBegin) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

static_assert(fnv1a("foobar") == 0x85944171f73967e8U);  // of the authors' test vectors

}  // namespace score::inline base
