// This fuzz target tests a node's PMIx exchange against hostile nodes of the same job. The input is
// a list of records: a byte whose low bits select the event, a length byte, and that many bytes.
// The bytes are a message of a different node, a request of this node's tasks, or a call of the
// library.
//
// These rules must always hold: messages go to nodes of the job, every request has at most one
// answer, and answers name existing requests. The same bytes are also parsed as the parts of a
// group: the result must contain only data of the input.

#include "base/assert.hpp"
#include "scored/job/pmix/exchange.hpp"
#include "scored/job/pmix/group_part.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

namespace {

using score::pmix::Exchange;
using score::pmix::ExchangeOutcome;

constexpr std::uint32_t kNodes = 3;

class Harness {
 public:
  void happen(unsigned what, std::string_view bytes) {
    using namespace std::chrono_literals;
    now_ += 400ms;
    const std::string text(bytes);
    const std::uint32_t rank = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % 6;
    score::wire::PmixPeer message;
    if (what < kNodes && message.ParseFromString(text)) exchange_.receive(what, message);
    if (what == 3) exchange_.publish(token(), {{rank % 2, text, text}}, now_);
    if (what == 4) exchange_.lookup(token(), {text}, {.deadline = now_ + 2s, .waits = true}, now_);
    if (what == 5) exchange_.get(token(), rank, {.deadline = now_ + 2s}, now_);
    if (what == 6) exchange_.fence(token(), {0, rank}, text, now_);
    if (what == 7) exchange_.answered(rank, ExchangeOutcome::Success, text);
    if (what == 8) exchange_.unpublish(token(), rank % 2, {}, now_);
    exchange_.turn(now_);
    check();
    const auto group = score::pmix::join_parts(bytes);
    SCORE_ASSERT(!group || group->name.size() + group->data.size() < bytes.size());
  }

 private:
  std::uint64_t token() {
    open_.insert(++last_);
    return last_;
  }

  void check() {
    const auto actions = exchange_.take_actions();
    for (const auto& message : actions.messages) SCORE_ASSERT(message.node < kNodes);
    for (const auto& ask : actions.asks) SCORE_ASSERT(ask.rank < 2, "not of this node");
    for (const auto& answer : actions.answers) {
      SCORE_ASSERT(open_.erase(answer.token) == 1, "answered twice, or never asked");
    }
  }

  Exchange exchange_{0, {0, 0, 1, 2}};
  score::base::TimePoint now_{};
  std::set<std::uint64_t> open_;
  std::uint64_t last_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Harness harness;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const auto what = static_cast<unsigned char>(rest[0]) % 9U;
    const std::size_t length = static_cast<unsigned char>(rest[1]);
    const auto bytes = rest.substr(2, length);
    rest.remove_prefix(2 + bytes.size());
    harness.happen(what, bytes);
  }
  return 0;
}
