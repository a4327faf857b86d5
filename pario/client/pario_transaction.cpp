// Implements the transactions of pario.h.
#include "pario/client/handles.hpp"
#include "pario/client/pario.h"
#include "pario/client/transaction.hpp"

#include <cerrno>
#include <fcntl.h>

namespace pario = score::pario;

struct pario_transaction {
  pario_volume* volume = nullptr;
  pario::Volume::Transaction transaction;
};

namespace {

// Returns 0 or a negative errno value.
int check_file(const pario_transaction& transaction, const pario_file& file, int forbidden) {
  if (file.is_directory) return -EISDIR;
  if (file.volume != transaction.volume->volume.get()) return -EXDEV;
  return (file.flags & O_ACCMODE) != forbidden ? 0 : -EBADF;
}

}  // namespace

int pario_begin(pario_volume* volume, int flags, pario_transaction** transaction) {
  if (flags != PARIO_STABLE && flags != PARIO_VOLATILE) return -EINVAL;
  *transaction = new pario_transaction{
      volume, pario::Volume::Transaction(*volume->volume, flags == PARIO_STABLE)};
  return 0;
}

ssize_t pario_transaction_read(pario_transaction* transaction, pario_file* file, void* buffer,
                               std::size_t length, std::uint64_t offset) {
  if (const int error = check_file(*transaction, *file, O_WRONLY)) return error;
  if (length == 0) return 0;
  return transaction->transaction.read(file->file, static_cast<char*>(buffer), {offset, length});
}

ssize_t pario_transaction_write(pario_transaction* transaction, pario_file* file,
                                const void* buffer, std::size_t length, std::uint64_t offset) {
  if (const int error = check_file(*transaction, *file, O_RDONLY)) return error;
  if (length == 0) return 0;
  return transaction->transaction.write(file->file, static_cast<const char*>(buffer),
                                        {offset, length});
}

int pario_commit(pario_transaction* transaction) {
  const std::unique_ptr<pario_transaction> owned(transaction);
  return -owned->transaction.commit();
}

void pario_abort(pario_transaction* transaction) {
  delete transaction;
}
