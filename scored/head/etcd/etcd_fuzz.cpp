// Tests the answers of etcd: the input is the body of one. A key that is read must be accepted by
// EtcdWitness or refused, and base64 must survive both ways.
#include "base/assert.hpp"
#include "scored/head/etcd/etcd_message.hpp"
#include "scored/head/etcd/etcd_witness.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

namespace etcd = score::head::etcd;

void learn(const score::Result<etcd::Answer>& answer) {
  if (!answer || answer->stored_at) return;
  etcd::EtcdWitness witness(score::gang::LeaseTiming().lease);
  const bool is_found = witness.found(answer->found, score::TimePoint()).has_value();
  SCORE_ASSERT(is_found == witness.is_known(), "a value is half known");
  score::gang::LeaseRequest request;
  request.wants = true;
  request.term = score::Epoch(1);
  if (is_found) static_cast<void>(witness.propose(request, score::TimePoint()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kKey = "/scored/c/lease";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  learn(etcd::parse_read(text, kKey));
  learn(etcd::parse_replaced(text, kKey));
  static_cast<void>(etcd::describe_refusal(503, text));
  if (const auto bytes = etcd::decode_base64(text)) {
    SCORE_ASSERT(etcd::encode_base64(*bytes) == text, "base64 has changed");
  }
  const auto back = etcd::decode_base64(etcd::encode_base64(text));
  SCORE_ASSERT(back && *back == text, "base64 does not survive");
  return 0;
}
