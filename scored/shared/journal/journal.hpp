#pragma once
// Sends events to systemd's journal. Asio-free.

#include "scored/shared/journal/event.hpp"

#include <span>
#include <string_view>

namespace score {

// Returns true if `fd` is the stream that the service manager names in $JOURNAL_STREAM,
// "device:inode" (systemd.exec(5)). `journal_stream` is null if it names none.
[[nodiscard]] bool is_journal(int fd, const char* journal_stream);

// Sends one entry. Waits for the journal as a write to stderr would. Returns false if the journal
// does not accept it.
[[nodiscard]] bool send_to_journal(std::span<const JournalField> fields);

// Sends events to the journal from now on if stderr is the journal; events that it does not accept
// go to stderr. Must be called before other threads report.
void report_to_journal_if_started_by_it();

}  // namespace score
