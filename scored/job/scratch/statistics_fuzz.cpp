// This fuzz test is a server of a volume that answers a shepherd's requests with arbitrary
// bytes. The exchange ends or continues, never stores more than one reply, and accepts no answer
// from a server without the key. The first byte of the input selects whether an honest handshake
// comes first, and the size of the pieces in which the rest arrives.

#include "scored/job/scratch/statistics_exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace score;  // NOLINT(google-build-using-namespace)

void require(bool holds) {
  if (!holds) std::abort();
}

// Sends greeting and proof, as a server that has the key does.
bool shake_hands(shepherd::StatisticsExchange& exchange, const pario::VolumeDescription& volume,
                 const pario::Nonce& nonce) {
  std::string greeting(pario::kMagic);
  greeting.append(16, 's');
  const auto answer = exchange.take(greeting);
  require(answer && answer->size() == pario::kAnswerBytes);
  pario::ProofOf of{{}, nonce, 0, volume.name, false};
  of.server_nonce.fill('s');
  const pario::Proof proof = pario::make_proof(volume.key, of);
  const auto question = exchange.take({proof.data(), proof.size()});
  require(question && question->size() == pario::kHeaderBytes);
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  pario::VolumeDescription volume;
  volume.name = "job-257";
  volume.key.fill('k');
  volume.servers.push_back({"127.0.0.1", "7711"});
  pario::Nonce nonce{};
  nonce.fill('c');
  shepherd::StatisticsExchange exchange(volume, 0, nonce);
  const bool is_honest = (data[0] & 1U) != 0 && shake_hands(exchange, volume, nonce);
  const std::size_t piece = 1 + (data[0] >> 1U);
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!rest.empty()) {
    const auto reply = exchange.take(rest.substr(0, piece));
    rest.remove_prefix(std::min(piece, rest.size()));
    if (!reply) return 0;
    require(reply->size() <= pario::kAnswerBytes);
    if (exchange.answer()) require(is_honest);
    if (exchange.is_ready()) require(exchange.question().size() == pario::kHeaderBytes);
  }
  return 0;
}
