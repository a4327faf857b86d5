#include "scored/head/process/witness_set.hpp"

#include "base/text/fnv1a.hpp"
#include "proto/frames/parse.hpp"
#include "scored/shared/leases/lease_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace score::head {
namespace {

// With more witnesses the position travels with the leases, because a request to each of them for
// each change would cost too much.
constexpr std::size_t kMostNoting = 5;
// Five named witnesses are enough that one of them may lie.
constexpr std::size_t kEnoughForALiar = 5;

std::uint64_t digest_of(const std::vector<std::string>& names, std::uint64_t digest) {
  for (const std::string& name : names) digest = base::fnv1a("\n", base::fnv1a(name, digest));
  return digest;
}

// Each head may reach etcd by other addresses.
std::vector<std::string> names_of(const LeaseConfig& lease) {
  return {"etcd", lease.prefix};
}

}  // namespace

WitnessSet::WitnessSet(const HeadConfig& config, const proto::KeyRing& ring)
    : config_(config),
      ring_(ring),
      nodes_(config.configured_nodes),
      votes_(nodes_.size()),
      connections_(nodes_.size()),
      named_(config.lease.is_in_etcd() ? names_of(config.lease) : config.witnesses),
      is_in_etcd_(config.lease.is_in_etcd()) {
  for (std::size_t i = 0; i < votes_.size(); ++i) {
    if (named_.empty()) votes_[i] = i;
  }
  for (std::size_t vote = 0; vote < config.witnesses.size(); ++vote) {
    votes_[place_of(config.witnesses[vote])] = vote;
  }
  if (!named_.empty()) names_ = digest_of(named_, base::kFnv1aBegin);
}

gang::Leadership::Settings WitnessSet::settings(gang::Leadership::Settings settings) const {
  const std::size_t named = is_in_etcd_ ? 1 : named_.size();
  settings.witnesses = named != 0 ? named : config_.configured_nodes.size();
  settings.liars = named >= kEnoughForALiar ? 1 : 0;
  settings.notes_changes = settings.witnesses <= kMostNoting;
  return settings;
}

std::size_t WitnessSet::place_of(std::string_view node) {
  const auto place = std::ranges::find(nodes_, node);
  if (place != nodes_.end()) return static_cast<std::size_t>(place - nodes_.begin());
  nodes_.emplace_back(node);
  votes_.emplace_back();
  connections_.emplace_back();
  return nodes_.size() - 1;
}

void WitnessSet::connected(std::size_t place, ConnectionPtr connection) {
  if (const auto before = std::exchange(connections_[place], std::move(connection))) {
    before->close();
  }
}

void WitnessSet::lost(std::size_t place, const ConnectionPtr& connection) {
  if (connections_[place] == connection) connections_[place] = nullptr;
}

gang::LeaseRequest WitnessSet::sealed(gang::LeaseRequest request) const {
  if (request.mark.term != Epoch()) request.mark.seal = seal(request.mark);
  return request;
}

void WitnessSet::send(const gang::LeaseRequest& request, bool only_witnesses) const {
  const auto bytes = proto::encode_frame(proto::to_wire(sealed(request)));
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i] && (votes_[i] || !only_witnesses)) connections_[i]->send_shared(bytes);
  }
}

gang::MarkSeal WitnessSet::seal_with(const proto::Key& key, const gang::LogMark& mark) const {
  const proto::Key code = proto::derive_key(
      key, fmt::format("scored mark {} {} {} {} {} {}", names_, mark.term, mark.version, mark.heads,
                       mark.position.term, mark.position.sequence));
  gang::MarkSeal seal;
  std::memcpy(&seal.high, code.bytes().data(), sizeof(seal.high));
  std::memcpy(&seal.low, code.bytes().data() + sizeof(seal.high), sizeof(seal.low));
  return seal;
}

gang::MarkSeal WitnessSet::seal(const gang::LogMark& mark) const {
  return seal_with(ring_.newest().key, mark);
}

gang::LogMark WitnessSet::checked(const gang::LogMark& mark) const {
  const bool is_sealed =
      ring_.has_key([&](const proto::Key& key) { return seal_with(key, mark) == mark.seal; });
  return is_sealed ? mark : gang::LogMark();
}

std::uint64_t WitnessSet::digest() const {
  const std::uint64_t nodes = digest_of(config_.configured_nodes, base::kFnv1aBegin);
  return named_.empty() ? nodes : digest_of(named_, base::fnv1a("\n", nodes));
}

}  // namespace score::head
