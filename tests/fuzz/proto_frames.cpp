// This fuzz target tests the frame reader. The input is the sender's role, a chunk size, then the
// stream. For any chunks, the reader must return the same frames and the same error, and never more
// bytes than it received.

#include "base/assert.hpp"
#include "proto/frames/frame_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using score::proto::FrameReader;
using score::proto::InFrame;
using score::proto::Role;

struct Outcome {
  std::vector<InFrame> frames;
  std::string error;
};

// Returns true to continue.
bool take_frames(FrameReader& reader, Role sender, Outcome& out) {
  for (;;) {
    auto frame = reader.next(sender);
    if (!frame) {
      out.error = frame.error().message();
      return false;
    }
    if (!*frame) return true;
    out.frames.push_back(std::move(**frame));
  }
}

Outcome read_in_chunks(std::string_view stream, std::size_t chunk, Role sender) {
  FrameReader reader;
  Outcome out;
  while (!stream.empty()) {
    const std::size_t now = std::min(chunk, stream.size());
    reader.feed(stream.substr(0, now));
    stream.remove_prefix(now);
    if (!take_frames(reader, sender, out)) return out;
    SCORE_ASSERT(reader.is_between_frames() || reader.wanted_bytes() > 0);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Role sender{static_cast<std::uint8_t>(data[0] % score::proto::kRoleCount)};
  const std::size_t chunk = 1 + data[1] % 64U;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Outcome small = read_in_chunks(stream, chunk, sender);
  const Outcome whole = read_in_chunks(stream, stream.size() + 1, sender);
  SCORE_ASSERT(small.error == whole.error, "'{}' and '{}'", small.error, whole.error);
  SCORE_ASSERT(small.frames.size() == whole.frames.size());
  std::string again;
  for (std::size_t i = 0; i < whole.frames.size(); ++i) {
    const InFrame& frame = whole.frames[i];
    SCORE_ASSERT(small.frames[i].payload == frame.payload && small.frames[i].type == frame.type);
    SCORE_ASSERT(score::proto::may_open(sender, frame.type));
    score::proto::append_frame(again, frame.type, frame.payload);
  }
  SCORE_ASSERT(stream.starts_with(again), "frames encode to the bytes they came from");
  return 0;
}
