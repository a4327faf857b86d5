// This module is tested by test_api.py and test_api_changes.py.
#include "scored/head/api/api_streams.hpp"

#include "base/limits.hpp"
#include "base/text/json_writer.hpp"
#include "proto/documents/accounting_document.hpp"
#include "proto/documents/job_document.hpp"
#include "proto/documents/words.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace score::head {
namespace {

using Piece = asio::awaitable<std::optional<std::string>>;

constexpr std::uint64_t kWindowBytes = 4 * limits::kMiB;  // of output that is not acknowledged yet

// Whoever watches a job gets its output, too, and must take it.
void take_output(HeadClient& head, std::uint64_t job, const wire::Output& output) {
  wire::OutputTaken taken;
  taken.set_job(job);
  taken.set_bytes(output.data().size());
  head.send(taken);
}

wire::Attach attach_to(std::uint64_t job) {
  wire::Attach attach;
  attach.set_job(job);
  attach.set_window_bytes(kWindowBytes);
  return attach;
}

template <class Reader>
monitor::ApiAnswer in_pieces(std::shared_ptr<Reader> reader, std::string type) {
  monitor::ApiAnswer answer;
  answer.type = std::move(type);
  answer.next = [reader] { return reader->next(); };
  return answer;
}

// FrameReader makes pieces of an answer from the frames that the head sends about a job.
class FrameReader {
 public:
  explicit FrameReader(HeadClient head) : head_(std::move(head)) {}

  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;
  virtual ~FrameReader() = default;

  Piece next() {
    while (piece_.empty() && !is_over_) {
      auto frame = co_await head_.next();
      if (!frame) co_return std::nullopt;
      take(*frame);
    }
    co_return std::exchange(piece_, {});
  }

 protected:
  virtual void take(const proto::InFrame& frame) = 0;

  HeadClient head_;
  std::string piece_;
  bool is_over_ = false;
};

// ---- output -------------------------------------------------------------------------------------

class OutputReader final : public FrameReader {
 public:
  OutputReader(HeadClient head, const OutputRequest& wanted)
      : FrameReader(std::move(head)), wanted_(wanted), left_(wanted.offset) {}

  asio::awaitable<Status> begin() {
    head_.send(attach_to(wanted_.job));
    auto first = co_await head_.next();
    if (!first) co_return first.error();
    // The output of a job that has ended comes whole, and then its end. Of another the reply to a
    // second request follows everything that the head has now.
    const auto news = proto::parse<wire::JobNews>(*first);
    const bool goes_on = news && !proto::is_final_state(news->status().state());
    if (!wanted_.follows && goes_on) head_.send(wire::ListNodes());
    take(*first);
    co_return Status();
  }

 private:
  void take(const proto::InFrame& frame) override {
    if (frame.type == proto::FrameType::JobEnded || frame.type == proto::FrameType::NodeList) {
      is_over_ = true;
      return;
    }
    const auto output = proto::parse<wire::Output>(frame);
    if (!output) return;  // news of the job
    take_output(head_, wanted_.job, *output);
    if (wanted_.stream && output->stream() != *wanted_.stream) return;
    std::string_view data = output->data();
    const std::size_t known = std::min<std::uint64_t>(left_, data.size());
    left_ -= known;
    piece_ += data.substr(known);
  }

  OutputRequest wanted_;
  std::uint64_t left_;  // bytes that the caller has already
};

// ---- events -------------------------------------------------------------------------------------

// The head reports each change of the job's state and reasons, but the events of its life only with
// the status of a single job, which is asked for after each change of the state.
class EventReader final : public FrameReader {
 public:
  EventReader(HeadClient head, const JobEventsRequest& wanted)
      : FrameReader(std::move(head)), job_(wanted.job), last_event_ns_(wanted.after_event) {}

  asio::awaitable<Status> begin() {
    head_.send(attach_to(job_));
    auto first = co_await head_.next();
    if (!first) co_return first.error();
    take(*first);
    co_return Status();
  }

 private:
  void take(const proto::InFrame& frame) override {
    if (const auto output = proto::parse<wire::Output>(frame)) {
      return take_output(head_, job_, *output);
    }
    if (const auto news = proto::parse<wire::JobNews>(frame)) {
      const bool is_first = state_ == kNoState;
      if (std::exchange(state_, news->status().state()) != state_ && !is_first) ask_events();
      return write(news->status());
    }
    if (const auto list = proto::parse<wire::JobList>(frame)) {
      for (const auto& job : list->jobs()) write_events(job);
    }
    const auto ended = proto::parse<wire::JobEnded>(frame);
    if (!ended) return;
    write(ended->status());
    piece_ += "event: end\ndata: {}\n\n";
    is_over_ = true;
  }

  void ask_events() {
    wire::ListJobs ask;
    ask.set_all_users(true);
    ask.set_finished(true);
    ask.add_jobs(job_);
    head_.send(ask);
  }

  void write(const wire::JobStatus& job) {
    write_events(job);
    piece_ += fmt::format("event: job\ndata: {}\n\n", proto::job_document(job));
  }

  void write_events(const wire::JobStatus& job) {
    for (const auto& event : job.events()) {
      if (event.wall_ns() <= last_event_ns_) continue;
      last_event_ns_ = event.wall_ns();
      JsonWriter json(JsonWriter::Layout::Line);
      proto::write_moment(json.begin_object(), "unix_s", event.wall_ns());
      json.field("text", event.text()).end_object();
      piece_ += fmt::format("id: {}\nevent: event\ndata: {}\n\n", event.wall_ns(), json.take());
    }
  }

  static constexpr std::uint32_t kNoState = UINT32_MAX;

  std::uint64_t job_;
  std::uint32_t state_ = kNoState;
  std::int64_t last_event_ns_;
};

// ---- records ------------------------------------------------------------------------------------

// Each piece is a page of the head's, so a year of jobs takes no more memory than an hour.
class RecordReader {
 public:
  RecordReader(HeadClient head, RecordsRequest wanted)
      : head_(std::move(head)), wanted_(std::move(wanted)) {
    ask_.set_all_users(wanted_.user != "me");
    ask_.set_since_wall_ns(wanted_.since_wall_ns);
  }

  asio::awaitable<Status> begin() {
    piece_ = wanted_.as_csv ? proto::csv_header()
                            : std::string("{\"schema\":\"scored.accounting/1\",\"jobs\":[");
    const auto read = co_await read_page();
    co_return read;
  }

  Piece next() {
    while (piece_.empty() && !is_over_) {
      const auto read = co_await read_page();
      if (!read) co_return std::nullopt;
    }
    co_return std::exchange(piece_, {});
  }

 private:
  asio::awaitable<Status> read_page() {
    const auto page = co_await head_.ask<wire::Accounting>(ask_);
    if (!page) co_return page.error();
    bool is_last = !page->more() || page->rows().empty();
    for (const auto& row : page->rows()) {
      is_last = is_last || row.ended_wall_ns() >= wanted_.until_wall_ns;
      ask_.set_since_wall_ns(row.ended_wall_ns());
      ask_.set_after_job(row.job());
      const bool is_chosen = row.ended_wall_ns() >= wanted_.since_wall_ns &&
                             row.ended_wall_ns() < wanted_.until_wall_ns && is_users(row);
      if (is_chosen) write(row);
    }
    if (is_last) {
      is_over_ = true;
      if (!wanted_.as_csv) piece_ += "]}\n";
    }
    co_return Status();
  }

  [[nodiscard]] bool is_users(const wire::AccountingRow& row) const {
    return wanted_.user == "me" || wanted_.user == "all" || row.user_name() == wanted_.user;
  }

  void write(const wire::AccountingRow& row) {
    if (wanted_.as_csv) {
      piece_ += proto::csv_record(row);
      return;
    }
    JsonWriter json(JsonWriter::Layout::Line);
    proto::write_record(json, row);
    piece_ += (std::exchange(has_rows_, true) ? ",\n" : "\n") + json.take();
  }

  HeadClient head_;
  RecordsRequest wanted_;
  wire::GetAccounting ask_;
  std::string piece_;
  bool has_rows_ = false;
  bool is_over_ = false;
};

}  // namespace

asio::awaitable<Result<monitor::ApiAnswer>> send_output(HeadClient head, OutputRequest wanted) {
  const auto reader = std::make_shared<OutputReader>(std::move(head), wanted);
  const auto begun = co_await reader->begin();
  if (!begun) co_return begun.error();
  co_return in_pieces(reader, "application/octet-stream");
}

asio::awaitable<Result<monitor::ApiAnswer>> send_events(HeadClient head, JobEventsRequest wanted) {
  const auto reader = std::make_shared<EventReader>(std::move(head), wanted);
  const auto begun = co_await reader->begin();
  if (!begun) co_return begun.error();
  co_return in_pieces(reader, "text/event-stream");
}

asio::awaitable<Result<monitor::ApiAnswer>> send_records(HeadClient head, RecordsRequest wanted) {
  const std::string type = wanted.as_csv ? "text/csv; charset=utf-8" : "application/json";
  const auto reader = std::make_shared<RecordReader>(std::move(head), std::move(wanted));
  const auto begun = co_await reader->begin();
  if (!begun) co_return begun.error();
  co_return in_pieces(reader, type);
}

}  // namespace score::head
