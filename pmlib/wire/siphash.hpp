// SipHash computes SipHash-2-4 (Aumasson and Bernstein, 2012), a keyed hash of 64 bits that cannot
// be computed without the key. It takes a message in pieces; all but the last consist of whole
// 8-byte words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace score::pm {

struct SipKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : v0_(key.low ^ 0x736f6d6570736575),
        v1_(key.high ^ 0x646f72616e646f6d),
        v2_(key.low ^ 0x6c7967656e657261),
        v3_(key.high ^ 0x7465646279746573) {}

  // Adds the next piece; `words.size()` must be a multiple of 8.
  void add(std::span<const std::byte> words) {
    for (std::size_t at = 0; at < words.size(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, words.data() + at, sizeof word);
      compress(word);
    }
    length_ += words.size();
  }

  // Adds the last piece, of any length, and returns the hash. The object cannot be used again.
  std::uint64_t finish(std::span<const std::byte> rest) {
    const std::size_t whole = rest.size() / 8 * 8;
    add(rest.first(whole));
    std::uint64_t last = (length_ + rest.size() - whole) << 56;
    for (std::size_t i = whole; i < rest.size(); ++i) {
      last |= std::uint64_t{std::to_integer<std::uint8_t>(rest[i])} << (8 * (i - whole));
    }
    compress(last);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void compress(std::uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }

  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t length_ = 0;
};

}  // namespace score::pm
