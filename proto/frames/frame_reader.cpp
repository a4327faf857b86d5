#include "proto/frames/frame_reader.hpp"

#include "base/assert.hpp"
#include "proto/frames/errc.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace score::proto {

namespace {

// A payload of this size is reserved at once. A larger one gets memory only as it arrives.
constexpr std::size_t kTrustedBytes = 4096;
// An idle reader may keep this much memory.
constexpr std::size_t kIdleBytes = 512;

}  // namespace

base::Result<const FrameRule*> check_header(const FrameHeader& header, Role sender) {
  const auto type = FrameType{header.type};
  const FrameRule* rule = find_rule(type);
  if (rule == nullptr) return base::fail(WireErrc::UnknownType, "type {}", header.type);
  if (!may_open(sender, type)) {
    return base::fail(WireErrc::NotAllowed, "{} from {}", rule->name, name_of(sender));
  }
  if (header.length > rule->max_bytes) {
    return base::fail(WireErrc::TooLong, "{} of {} bytes, limit {}", rule->name, header.length,
                      rule->max_bytes);
  }
  return rule;
}

void append_frame(std::string& out, FrameType type, std::string_view payload) {
  SCORE_ASSERT(payload.size() <= 0xffffffff, "{} of {} bytes", name_of(type), payload.size());
  FrameHeader header;
  header.type = static_cast<std::uint16_t>(type);
  header.length = static_cast<std::uint32_t>(payload.size());
  std::size_t at = out.size();
  out.resize(at + kHeaderBytes);
  encode_header(header, std::as_writable_bytes(std::span(out).subspan(at)).first<kHeaderBytes>());
  out += payload;
}

std::string encode_frame_bytes(FrameType type, std::string_view payload) {
  std::string bytes;
  bytes.reserve(kHeaderBytes + payload.size());
  append_frame(bytes, type, payload);
  return bytes;
}

void FrameReader::feed(std::string_view bytes) {
  if (error_) return;
  if (header_ && pending_.size() == taken_) {
    // Inside a large frame, as usual, the bytes go straight to the payload.
    std::size_t now = std::min(bytes.size(), header_->length - payload_.size());
    grow_payload(bytes.substr(0, now));
    bytes.remove_prefix(now);
  }
  if (!bytes.empty()) drop_taken();
  pending_ += bytes;
}

base::Result<std::optional<InFrame>> FrameReader::next(Role sender) {
  if (error_) return *error_;
  if (!header_) {
    if (pending_.size() - taken_ < kHeaderBytes) {
      drop_taken();
      return std::optional<InFrame>();
    }
    auto taken = take_header(sender);
    if (!taken) {
      error_ = taken.error();
      pending_ = std::string();
      taken_ = 0;
      return *error_;
    }
  }
  std::size_t now = std::min(pending_.size() - taken_, header_->length - payload_.size());
  grow_payload(std::string_view(pending_).substr(taken_, now));
  taken_ += now;
  if (payload_.size() < header_->length) {
    drop_taken();
    return std::optional<InFrame>();
  }
  InFrame frame{FrameType{header_->type}, std::exchange(payload_, std::string())};
  header_.reset();
  // The frame may be handled much later, so only the bytes after it keep memory.
  if (taken_ > kIdleBytes && taken_ >= pending_.size() / 2) {
    pending_ = std::string(pending_, taken_);
    taken_ = 0;
  }
  return std::optional<InFrame>(std::move(frame));
}

std::size_t FrameReader::wanted_bytes() const {
  std::size_t have = pending_.size() - taken_;
  std::size_t need = header_ ? header_->length - payload_.size() : kHeaderBytes;
  return need > have ? need - have : 0;
}

base::Result<void> FrameReader::take_header(Role sender) {
  auto bytes = std::as_bytes(std::span(pending_).subspan(taken_)).first<kHeaderBytes>();
  auto header = decode_header(bytes);
  if (!header) return header.error();
  auto rule = check_header(*header, sender);
  if (!rule) return rule.error();
  taken_ += kHeaderBytes;
  header_ = *header;
  return {};
}

void FrameReader::grow_payload(std::string_view bytes) {
  std::size_t need = payload_.size() + bytes.size();
  if (need > payload_.capacity()) {
    std::size_t ahead = std::max(kTrustedBytes, 2 * need);
    payload_.reserve(std::min<std::size_t>(header_->length, ahead));
  }
  payload_ += bytes;
}

void FrameReader::drop_taken() {
  if (taken_ == 0) return;
  pending_.erase(0, taken_);
  taken_ = 0;
  if (pending_.empty() && pending_.capacity() > kIdleBytes) pending_ = std::string();
}

}  // namespace score::proto
