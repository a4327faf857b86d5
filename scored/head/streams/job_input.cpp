#include "scored/head/streams/job_input.hpp"

#include <algorithm>

namespace score::head {

Status JobInput::accept(std::string data, bool eof) {
  if (ended_) {
    dropped_ += data.size();
    return {};
  }
  if (accepted_ - settled_ + data.size() > limits::kIoWindowBytes) {
    return fail(Errc::TooLarge, "input beyond the window of {} bytes", limits::kIoWindowBytes);
  }
  accepted_ += data.size();
  ended_ = eof;
  if (started_ && targets_.empty()) {
    settled_ = accepted_;
    dropped_ += data.size();
    return {};
  }
  // Many small pieces would take more memory than their bytes.
  if (!waiting_.empty() && waiting_.back().data.size() + data.size() <= limits::kIoChunkBytes) {
    waiting_.back().data += data;
    waiting_.back().eof = eof;
  } else {
    waiting_.push_back({std::move(data), eof});
  }
  return {};
}

std::size_t JobInput::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const Piece& piece : waiting_) bytes += piece.data.size();
  return bytes;
}

void JobInput::start(std::vector<std::uint32_t> node_indices) {
  if (started_) return;
  started_ = true;
  targets_ = std::move(node_indices);
  taken_.assign(targets_.size(), 0);
  if (!targets_.empty()) return;
  dropped_ += accepted_ - settled_;
  settled_ = accepted_;
  waiting_.clear();
}

void JobInput::restart() {
  if (!std::exchange(started_, false)) return;
  if (sent_ > settled_) dropped_ += sent_ - settled_;
  sent_ = settled_ = accepted_ = 0;
  for (const Piece& piece : waiting_) accepted_ += piece.data.size();
  targets_.clear();
  taken_.clear();
  const bool has_end = !waiting_.empty() && waiting_.back().eof;
  if (ended_ && !has_end) waiting_.push_back({{}, true});
}

std::vector<JobInput::Piece> JobInput::take_pieces() {
  if (!started_) return {};
  for (const Piece& piece : waiting_) sent_ += piece.data.size();
  return std::exchange(waiting_, {});
}

std::uint64_t JobInput::taken(std::uint32_t node_index, std::uint64_t bytes) {
  const auto found = std::find(targets_.begin(), targets_.end(), node_index);
  if (found == targets_.end()) return 0;
  std::uint64_t& of_node = taken_[static_cast<std::size_t>(found - targets_.begin())];
  of_node = std::min(sent_, of_node + std::min(bytes, sent_));
  return settle();
}

std::uint64_t JobInput::settle() {
  const std::uint64_t slowest = *std::min_element(taken_.begin(), taken_.end());
  if (slowest <= settled_) return 0;
  return slowest - std::exchange(settled_, slowest);
}

}  // namespace score::head
