#include "proto/transport/key.hpp"

#include "base/assert.hpp"
#include "base/os/daemon_users.hpp"
#include "base/os/fd.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::proto {

namespace {

constexpr std::size_t kHexBytes = 2 * kKeyBytes;

std::array<std::uint8_t, kKeyBytes> hmac_sha256(const std::array<std::uint8_t, kKeyBytes>& key,
                                                std::string_view data) {
  std::array<std::uint8_t, kKeyBytes> out{};
  unsigned length = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes,
                                   data.size(), out.data(), &length);
  SCORE_ASSERT(made != nullptr && length == out.size(), "HMAC-SHA256 of {} bytes", data.size());
  return out;
}

}  // namespace

Key::~Key() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

Key derive_key(const Key& cluster_key, std::string info) {
  std::array<std::uint8_t, kKeyBytes> no_salt{};
  const auto& secret = cluster_key.bytes();
  Key extracted(
      hmac_sha256(no_salt, {reinterpret_cast<const char*>(secret.data()), secret.size()}));
  // One block of output is enough, so expanding is a single step.
  info += '\x01';
  return Key(hmac_sha256(extracted.bytes(), info));
}

Key derive_node_key(const Key& cluster_key, std::string_view node_name) {
  return derive_key(cluster_key, fmt::format("scored node {}", node_name));
}

namespace {

std::string prove(const Key& cluster_key, std::string info) {
  const Key proof = derive_key(cluster_key, std::move(info));
  return {reinterpret_cast<const char*>(proof.bytes().data()), proof.bytes().size()};
}

// Compares in constant time.
bool is_equal(std::string_view wanted, std::string_view proof) {
  return proof.size() == wanted.size() &&
         CRYPTO_memcmp(proof.data(), wanted.data(), wanted.size()) == 0;
}

}  // namespace

std::string prove_head(const Key& cluster_key, base::Epoch incarnation) {
  return prove(cluster_key, fmt::format("scored head {}", incarnation));
}

std::string prove_job(const Key& cluster_key, base::JobId job) {
  return prove(cluster_key, fmt::format("scored job {}", job));
}

bool is_head_proof(const Key& cluster_key, base::Epoch incarnation, std::string_view proof) {
  return is_equal(prove_head(cluster_key, incarnation), proof);
}

bool is_job_proof(const Key& cluster_key, base::JobId job, std::string_view proof) {
  return is_equal(prove_job(cluster_key, job), proof);
}

Digest digest_of(std::string_view bytes) {
  Digest out{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out.data());
  return out;
}

Key random_key() {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  ssize_t n = ::getrandom(bytes.data(), bytes.size(), 0);
  SCORE_ASSERT(n == static_cast<ssize_t>(bytes.size()), "getrandom gave {}", n);
  return Key(bytes);
}

std::string format_key(const Key& key) {
  std::string text;
  text.reserve(kHexBytes + 1);
  for (const std::uint8_t byte : key.bytes()) {
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  }
  return text;
}

base::Result<Key> parse_key(std::string_view text) {
  std::array<std::uint8_t, kKeyBytes> bytes{};
  if (text.size() != kHexBytes) return base::fail(base::Errc::Malformed, "not 64 hex digits");
  for (std::size_t i = 0; i < kKeyBytes; ++i) {
    const char* digits = text.data() + 2 * i;
    auto [stop, error] = std::from_chars(digits, digits + 2, bytes[i], 16);
    if (error != std::errc() || stop != digits + 2) {
      return base::fail(base::Errc::Malformed, "not 64 hex digits");
    }
  }
  return Key(bytes);
}

namespace {

// Root may read the keys of the daemons, as in scored --role=head --node-key.
bool may_own_key(uid_t owner) {
  if (owner == ::geteuid() || owner == 0) return true;
  return ::geteuid() == 0 && base::is_daemon_user(owner);
}

}  // namespace

base::Result<std::string> read_key_file(const std::string& path) {
  base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return base::fail(base::errno_code(errno), "cannot open key file {}", path);

  struct stat info {};

  if (::fstat(file.get(), &info) != 0) return base::fail(base::errno_code(errno), "{}", path);
  if (!S_ISREG(info.st_mode)) {
    return base::fail(base::Errc::Malformed, "key file {} is no ordinary file", path);
  }
  if (!may_own_key(info.st_uid)) {
    return base::fail(base::Errc::Denied, "key file {} belongs to uid {}", path, info.st_uid);
  }
  if ((info.st_mode & 0077U) != 0) {
    return base::fail(base::Errc::Denied, "key file {} has mode {:04o}, must be 0600", path,
                      info.st_mode & 07777U);
  }
  std::string text(kMostKeyFileBytes + 1, '\0');
  ssize_t n = ::read(file.get(), text.data(), text.size());
  if (n < 0) return base::fail(base::errno_code(errno), "cannot read key file {}", path);
  text.resize(static_cast<std::size_t>(n));
  if (text.size() > kMostKeyFileBytes) {
    wipe(text);
    return base::fail(base::Errc::Malformed, "key file {} is too long", path);
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void wipe(std::string& secret) {
  OPENSSL_cleanse(secret.data(), secret.size());
  secret.clear();
}

base::Result<void> store_key_file(const std::string& path, std::string_view text) {
  base::UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) {
    if (errno == EEXIST) return base::fail(base::Errc::Exists, "key file {} exists already", path);
    return base::fail(base::errno_code(errno), "cannot create key file {}", path);
  }
  ssize_t n = ::write(file.get(), text.data(), text.size());
  bool stored = n == static_cast<ssize_t>(text.size()) && ::fsync(file.get()) == 0;
  int error = n >= 0 && errno == 0 ? ENOSPC : errno;
  if (stored) return {};
  ::unlink(path.c_str());
  return base::fail(base::errno_code(error), "cannot write key file {}", path);
}

base::Result<void> store_key(const std::string& path, const Key& key) {
  std::string text = format_key(key) + "\n";
  auto stored = store_key_file(path, text);
  wipe(text);
  return stored;
}

}  // namespace score::proto
