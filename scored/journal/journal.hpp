#pragma once
// Sends events to systemd's journal. Asio-free.

#include "scored/journal/event.hpp"

#include <span>
#include <string_view>

namespace score {

// Whether `fd` is the stream that the service manager names in $JOURNAL_STREAM, "device:inode"
// (systemd.exec(5)). nullptr: it names none.
[[nodiscard]] bool is_journal(int fd, const char* journal_stream);

// One entry. Waits for the journal as a write to stderr would. False: it does not take it.
[[nodiscard]] bool send_to_journal(std::span<const JournalField> fields);

// From now on events go to the journal if stderr is the journal; what it does not take goes to
// stderr. Before other threads report.
void report_to_journal_if_started_by_it();

}  // namespace score
