#pragma once
// Provides sctop's screen as lines of styled text, and the effect of keys on it. It is pure; curses
// only displays the lines.
//
//  ┌ header, switch times
//  │ gang matrix: one row per slot, one cell per node
//  │ load bars: one line per node
//  └ jobs, sorted and filtered; the function keys

#include "monitor/sctop/model.hpp"

#include <string>
#include <vector>

namespace score::sctop {

enum class Style { Plain, Faint, Strong, Reverse, Bad, Job };

struct StyledText {
  std::string text;  // printable UTF-8, no control characters
  Style style = Style::Plain;
  std::int64_t job = 0;  // Style::Job: the job whose colour is used

  friend bool operator==(const StyledText&, const StyledText&) = default;
};

using StyledLine = std::vector<StyledText>;

enum class SortBy { Job, User, Share, Scheduled, Elapsed, State };

struct ViewState {
  SortBy sort = SortBy::Job;
  bool descending = false;
  std::string filter;  // part of a job's id, user, name or state
  bool types_filter = false;
  bool shows_help = false;
  bool paused = false;
  std::string trouble;           // problem with the connection, for people; empty: none
  std::int64_t silent_s = 0;     // time without a document; 0: documents come as expected
  std::int64_t asks_cancel = 0;  // the job that is cancelled if the next key is y; 0: none
  std::size_t chosen = 0;        // line of the job list
  std::size_t first_node = 0;
  bool done = false;
};

struct ScreenSize {
  std::size_t lines = 24;
  std::size_t columns = 80;
};

// Returns at most as many lines as the screen has, each at most as wide.
std::vector<StyledLine> render(const Model& model, const ViewState& view, ScreenSize size);

// Returns the jobs that match the filter, in order.
std::vector<JobView> listed_jobs(const Model& model, const ViewState& view);

// KeyCode lists the keys, as in htop.
enum class KeyCode {
  Text,
  Up,
  Down,
  PageUp,
  PageDown,
  Home,
  End,
  Enter,
  Escape,
  Backspace,
  F1,
  F3,
  F6,
  F9,
  F10
};

struct KeyPress {
  KeyCode key = KeyCode::Text;
  char text = 0;  // KeyCode::Text
};

// UserCommand is the program's next action: cancel the selected job, or none.
struct UserCommand {
  std::int64_t cancel = 0;  // a job, or 0
};

UserCommand press(ViewState& view, const KeyPress& key, const Model& model);

}  // namespace score::sctop
