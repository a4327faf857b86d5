#include "scored/job/scratch/statistics_exchange.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace score::shepherd {

namespace {

constexpr std::size_t kReplyBytes = pario::kHeaderBytes + sizeof(pario::Statistics);

}  // namespace

StatisticsExchange::StatisticsExchange(const pario::VolumeDescription& volume, std::uint32_t server,
                                       const pario::Nonce& nonce)
    : volume_(volume), proof_{{}, nonce, server, volume.name, true} {}

std::optional<std::string> StatisticsExchange::take(std::string_view bytes) {
  if (input_.size() + bytes.size() > kReplyBytes) return std::nullopt;  // no message is longer
  input_ += bytes;
  switch (state_) {
    case State::Greeting:
      return take_greeting();
    case State::Welcome:
      return take_welcome();
    case State::Asked:
      return take_reply();
    case State::Ready:
      break;
  }
  return std::nullopt;
}

std::optional<std::string> StatisticsExchange::take_greeting() {
  if (input_.size() < pario::kGreetingBytes) return "";
  if (input_.size() > pario::kGreetingBytes || !input_.starts_with(pario::kMagic)) {
    return std::nullopt;
  }
  std::copy_n(input_.data() + pario::kMagic.size(), proof_.server_nonce.size(),
              proof_.server_nonce.data());
  const pario::Proof mine = pario::make_proof(volume_.key, proof_);
  std::string reply(pario::kMagic);
  reply.append(proof_.client_nonce.data(), proof_.client_nonce.size());
  reply.append(mine.data(), mine.size());
  input_.clear();
  state_ = State::Welcome;
  return reply;
}

std::optional<std::string> StatisticsExchange::take_welcome() {
  if (input_.size() < pario::kWelcomeBytes) return "";
  if (input_.size() > pario::kWelcomeBytes) return std::nullopt;
  pario::Proof proof{};
  std::copy_n(input_.data(), proof.size(), proof.data());
  pario::ProofOf by_server = proof_;
  by_server.by_client = false;
  if (!pario::is_equal(proof, pario::make_proof(volume_.key, by_server))) return std::nullopt;
  input_.clear();
  state_ = State::Ready;
  return question();
}

std::string StatisticsExchange::question() {
  pario::Request request;
  request.op = pario::Op::Statistics;
  request.tag = ++tag_;
  std::string bytes;
  pario::append_request(request, bytes);
  state_ = State::Asked;
  return bytes;
}

std::optional<std::string> StatisticsExchange::take_reply() {
  if (input_.size() < kReplyBytes) return "";
  pario::Reply reply;
  pario::Statistics statistics;
  const std::span<const char, pario::kHeaderBytes> header(input_.data(), pario::kHeaderBytes);
  const bool is_sound =
      pario::parse_reply(header, reply) && reply.error == 0 && reply.tag == tag_ &&
      pario::parse_body(std::string_view(input_).substr(pario::kHeaderBytes), statistics);
  if (!is_sound) return std::nullopt;
  input_.clear();
  state_ = State::Ready;
  answer_ = statistics;
  return "";
}

std::optional<pario::Statistics> StatisticsExchange::answer() {
  return std::exchange(answer_, std::nullopt);
}

}  // namespace score::shepherd
