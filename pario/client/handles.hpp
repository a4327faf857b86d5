// Defines the structures behind the handles of pario.h.
#pragma once

#include "pario/client/volume.hpp"

struct pario_volume {
  std::unique_ptr<score::pario::Volume> volume;
};

struct pario_file {
  score::pario::Volume* volume = nullptr;
  int flags = 0;
  bool is_directory = false;
  score::pario::OpenFile file;
};
