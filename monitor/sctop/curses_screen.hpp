#pragma once
// The terminal by ncursesw: puts lines there and gives keys. One at a time; the destructor leaves
// the terminal as it was.

#include "monitor/sctop/view.hpp"

#include <optional>

namespace score::sctop {

class CursesScreen {
 public:
  // Errors: NotFound (no terminal, or one that terminfo does not know).
  static Status open();
  CursesScreen();
  ~CursesScreen();
  CursesScreen(const CursesScreen&) = delete;
  CursesScreen& operator=(const CursesScreen&) = delete;

  [[nodiscard]] ScreenSize size() const;
  void show(const std::vector<Line>& lines);
  std::optional<KeyPress> next_key();  // nothing: none waits
};

}  // namespace score::sctop
