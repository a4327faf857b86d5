#pragma once
// CursesScreen manages the terminal through ncursesw: it shows lines and reads keys. Only one may
// exist at a time. The destructor restores the terminal.

#include "monitor/sctop/view.hpp"

#include <optional>

namespace score::sctop {

class CursesScreen {
 public:
  // Opens the terminal. Errors: NotFound (no terminal, or one that terminfo does not know).
  static Status open();
  CursesScreen();
  ~CursesScreen();
  CursesScreen(const CursesScreen&) = delete;
  CursesScreen& operator=(const CursesScreen&) = delete;

  [[nodiscard]] ScreenSize size() const;
  void show(const std::vector<StyledLine>& lines);
  std::optional<KeyPress> next_key();  // empty: no key waits
};

}  // namespace score::sctop
