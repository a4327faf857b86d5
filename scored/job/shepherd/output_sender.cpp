#include "scored/job/shepherd/output_sender.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "proto/node.pb.h"

#include <utility>

namespace score::shepherd {

OutputSender::OutputSender(EventLoop& loop, DaemonLink& link, OutputPump pump)
    : loop_(loop), link_(link), pump_(std::move(pump)), window_(base::limits::kIoWindowBytes) {}

base::Status OutputSender::start(std::function<void()> moved) {
  moved_ = std::move(moved);
  return loop_.add(pump_.descriptor(), 0, [this](std::uint32_t) { read(); });
}

void OutputSender::begin(std::uint64_t attempt, std::string node_name) {
  attempt_ = attempt;
  node_name_ = std::move(node_name);
}

void OutputSender::read() {
  const std::size_t bytes = pump_.pump(
      window_.room(), [this](TaskOutputChunk chunk) { send(window_.push(std::move(chunk))); });
  const base::Duration pause = pace_.read(bytes, base::monotonic_now());
  if (pause > base::Duration()) {
    is_pausing_ = true;
    loop_.after(pause, [this] {
      is_pausing_ = false;
      follow();
    });
  }
  watch();
}

void OutputSender::follow() {
  const bool may_read = !is_pausing_ && window_.room() > 0 && link_.queued_bytes() == 0;
  loop_.change(pump_.descriptor(), may_read ? EPOLLIN : 0U);
}

void OutputSender::watch() {
  follow();
  moved_();
}

void OutputSender::taken(std::uint64_t bytes) {
  window_.taken(bytes);
  watch();
}

void OutputSender::resend() {
  for (const auto& chunk : window_.held()) send(chunk);
}

void OutputSender::send(const TaskOutputChunk& chunk) {
  if (!link_.is_connected()) return;
  wire::TaskOutput output;
  output.set_attempt(attempt_);
  output.set_rank(chunk.rank);
  output.set_stream(chunk.stream);
  output.set_data(chunk.data);
  output.set_offset(chunk.offset);
  output.set_may_refuse(true);
  link_.send(output);
}

void OutputSender::note(std::uint32_t rank, const std::string& text) {
  auto line = fmt::format("scored: {}: rank {}: {}\n", node_name_, rank,
                          base::escape_terminal(text, base::limits::kMaxErrorTextBytes));
  send(window_.push({.rank = rank, .stream = wire::STDERR, .data = std::move(line), .offset = 0}));
}

}  // namespace score::shepherd
