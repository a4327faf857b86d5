// A head that was stopped or cut off finds requests and replies in its queues that another head has
// meanwhile answered differently. So the lease is compared with the clock for each frame that
// leaves, not once per connection or request.
#include "scored/head/cluster/answer_channel.hpp"

#include "base/assert.hpp"
#include "base/limits.hpp"
#include "proto/client.pb.h"
#include "proto/convert/convert.hpp"

#include <cstring>
#include <utility>

namespace score::head {
namespace {

class LeasedConnection final : public proto::Connection {
 public:
  LeasedConnection(std::shared_ptr<proto::Connection> inner, const LeaseCheck& lease)
      : inner_(std::move(inner)), lease_(lease) {}

  asio::awaitable<Result<proto::InFrame>> read(proto::Role sender) override {
    return inner_->read(sender);
  }

  bool send(proto::FrameType type, std::string_view payload) override {
    SCORE_ASSERT(is_view(type));
    if (lease_.holds()) return inner_->send(type, payload);
    inner_->close();
    return false;
  }

  bool send_shared(std::shared_ptr<const std::string> frame) override {
    std::array<std::byte, proto::kHeaderBytes> header{};
    std::memcpy(header.data(), frame->data(), header.size());
    const auto type = static_cast<proto::FrameType>(proto::decode_header(header)->type);
    return send(type, std::string_view(*frame).substr(proto::kHeaderBytes));
  }

  asio::awaitable<void> drained(std::size_t bytes) override { return inner_->drained(bytes); }

  std::size_t queued_bytes() const override { return inner_->queued_bytes(); }

  Duration unanswered_for() const override { return inner_->unanswered_for(); }

  void charge_to(std::shared_ptr<ByteBudget> incoming,
                 std::shared_ptr<ByteBudget> outgoing) override {
    inner_->charge_to(std::move(incoming), std::move(outgoing));
  }

  void disable_write_deadline() override { inner_->disable_write_deadline(); }

  void close() override { inner_->close(); }

  bool is_open() const override { return inner_->is_open(); }

  const std::string& peer() const override { return inner_->peer(); }

 private:
  std::shared_ptr<proto::Connection> inner_;
  const LeaseCheck& lease_;
};

}  // namespace

AnswerChannel::AnswerChannel(std::shared_ptr<proto::Connection> connection, const LeaseCheck& lease)
    : inner_(std::move(connection)),
      frames_(std::make_shared<LeasedConnection>(inner_, lease)),
      lease_(&lease) {}

void AnswerChannel::send_confirmation(proto::FrameType type, const std::string& payload) const {
  if (lease_->holds()) {
    inner_->send(type, payload);
  } else {
    inner_->close();
  }
}

void AnswerChannel::refuse(std::uint64_t tag, const Error& error) const {
  wire::Failed failed;
  failed.set_tag(tag);
  *failed.mutable_error() = proto::to_wire(error);
  // The code already says everything about our own errors; kernel errors need the text.
  const bool is_own = error.code().category() == errc_category();
  if (is_own && !error.context().empty()) {
    failed.mutable_error()->set_text(error.context().substr(0, limits::kMaxErrorTextBytes));
  }
  show(failed);
}

}  // namespace score::head
