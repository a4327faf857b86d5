/* libpario: striped volumes of Scored, without a mount.
 *
 * Functions return 0 or a number of bytes, or a negative value of errno: -ENOENT, -ENOSPC (the
 * volume is full), -EIO (a server could not be reached for about 10 s), -ESTALE (the file was
 * removed), ... Offsets and lengths are bytes. Paths begin at the root of the volume, with or
 * without a slash; symbolic links are not followed (-ELOOP). All functions may be called by several
 * threads at once; one pario_transfer may be used by only one thread.
 *
 * A read that starts after a write returned, on any node, sees the written data. The library caches
 * no data. See docs/reference/pario.md.
 */
#ifndef PARIO_H
#define PARIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pario_volume pario_volume;
typedef struct pario_file pario_file;
typedef struct pario_transfer pario_transfer;

/* Connects to the servers of the volume that the file `description` describes. If it is null, the
 * file that $PARIO_VOLUME names is used. `message`, if not null, receives an error text of at most
 * `message_bytes` bytes, including the final 0. */
int pario_open_volume(const char* description, pario_volume** volume, char* message,
                      size_t message_bytes);
/* Closes the volume. All its files must be closed before. Null is allowed. */
void pario_close_volume(pario_volume* volume);

/* Opens a file. flags: O_RDONLY, O_WRONLY or O_RDWR, and O_CREAT, O_EXCL, O_TRUNC, O_APPEND. */
int pario_open(pario_volume* volume, const char* path, int flags, mode_t mode, pario_file** file);
int pario_close(pario_file* file);

/* These work as pread(2) and pwrite(2). With O_APPEND pario_pwrite() ignores `offset`: writers on
 * all nodes append without overlap. */
ssize_t pario_pread(pario_file* file, void* buffer, size_t length, uint64_t offset);
ssize_t pario_pwrite(pario_file* file, const void* buffer, size_t length, uint64_t offset);

/* These transfer many parts of a file in few requests; `buffer` has their bytes one after the
 * other. A read returns the number of bytes that lie before the end of the file, and sets the
 * memory of the other bytes to 0. */
typedef struct pario_extent {
  uint64_t offset;
  uint64_t length;
} pario_extent;

ssize_t pario_read_extents(pario_file* file, const pario_extent* extents, size_t count,
                           void* buffer);
ssize_t pario_write_extents(pario_file* file, const pario_extent* extents, size_t count,
                            const void* buffer);

/* These start such a transfer and return. They wait only while many requests are in flight. The
 * transfer uses the buffer and the file until pario_wait(). */
int pario_start_read(pario_file* file, const pario_extent* extents, size_t count, void* buffer,
                     pario_transfer** transfer);
int pario_start_write(pario_file* file, const pario_extent* extents, size_t count,
                      const void* buffer, pario_transfer** transfer);
/* Waits until the transfer has ended, frees it, and returns its bytes or error. */
ssize_t pario_wait(pario_transfer* transfer);

/* A view shows parts of a file as one linear sequence of bytes: blocks of `block` bytes, `stride`
 * >= `block` bytes apart, from `start` on. With block 0 it shows everything from `start` on. */
typedef struct pario_view {
  uint64_t start;
  uint64_t block;
  uint64_t stride;
} pario_view;

/* Returns the view of the whole file (the independent view of PIOUS). */
pario_view pario_linear_view(void);
/* Returns the view of part `segment` of `segments` parts of the file, which is distributed in
 * chunks of the volume's stripe. With as many segments as servers, each is read from one server. */
pario_view pario_segmented_view(const pario_volume* volume, uint32_t segment, uint32_t segments);
/* These transfer the bytes [offset, offset + length) of the view. */
ssize_t pario_read_view(pario_file* file, const pario_view* view, void* buffer, size_t length,
                        uint64_t offset);
ssize_t pario_write_view(pario_file* file, const pario_view* view, const void* buffer,
                         size_t length, uint64_t offset);

/* A transaction consists of reads and writes of any files of the volume that take effect in one
 * step, as if transactions ran one after the other. Its writes stay in memory until pario_commit(),
 * 16 MB at most; the servers do no work for a transaction that is dropped. Its reads are checked
 * when it commits, so reads of a transaction that will fail may be inconsistent.
 *
 * PARIO_STABLE: once committed it survives a loss of power. PARIO_VOLATILE: it survives kill -9 of
 * servers and clients, and commits sooner. A plain write of bytes that it has read is a conflict;
 * plain reads are not part of this order. Only one thread may use a transaction. */
typedef struct pario_transaction pario_transaction;
#define PARIO_VOLATILE 0
#define PARIO_STABLE 1

int pario_begin(pario_volume* volume, int flags, pario_transaction** transaction);
/* These work as pario_pread() and pario_pwrite(), but all `length` bytes are read: bytes that do
 * not exist, including those beyond the end of the file, are 0. A read sees earlier writes of the
 * transaction. */
ssize_t pario_transaction_read(pario_transaction* transaction, pario_file* file, void* buffer,
                               size_t length, uint64_t offset);
ssize_t pario_transaction_write(pario_transaction* transaction, pario_file* file,
                                const void* buffer, size_t length, uint64_t offset);
/* Commits the transaction and frees it. 0: committed. -EAGAIN: it conflicts with another
 * transaction, and nothing was changed; begin again. -ECONNABORTED: a server could not be reached,
 * and nothing was changed. -EIO: a server could not be reached, and it is not known whether the
 * transaction was committed; that is decided within seconds after the server can be reached. */
int pario_commit(pario_transaction* transaction);
/* Frees the transaction; no data is changed. */
void pario_abort(pario_transaction* transaction);

/* In coordinated access, all ranks of a group do their parts of one access to one file in one call
 * each, in the same order of calls. They need no network besides the one to the servers. */
typedef struct pario_group pario_group;

/* Joins a group. Every rank of 0 .. size - 1 must join with the same `name`, which no other group
 * of the volume has or had, such as one with the number of the job and a counter. -EINVAL: no name,
 * or no such rank. */
int pario_join_group(pario_volume* volume, const char* name, uint32_t rank, uint32_t size,
                     pario_group** group);
/* Leaves the group and frees it. Null is allowed. */
void pario_leave_group(pario_group* group);
/* These work as the functions without _all. Each rank has its own extents or view, which may have
 * no bytes. The functions return when all ranks have done their part. The result is the number of
 * own bytes, or an error of any of the ranks, which is the same for all. -ECANCELED: a rank has
 * ended; -ETIMEDOUT: a rank has not called within a minute. After an error, data of the other ranks
 * may have been written. Only one thread may use a group. */
ssize_t pario_read_all(pario_group* group, pario_file* file, const pario_extent* extents,
                       size_t count, void* buffer);
ssize_t pario_write_all(pario_group* group, pario_file* file, const pario_extent* extents,
                        size_t count, const void* buffer);
ssize_t pario_read_view_all(pario_group* group, pario_file* file, const pario_view* view,
                            void* buffer, size_t length, uint64_t offset);
ssize_t pario_write_view_all(pario_group* group, pario_file* file, const pario_view* view,
                             const void* buffer, size_t length, uint64_t offset);

/* These work as the system calls of these names. st_ino is the number of the file in the volume. */
int pario_fstat(pario_file* file, struct stat* status);
int pario_ftruncate(pario_file* file, uint64_t length);
int pario_fsync(pario_file* file);
int pario_stat(pario_volume* volume, const char* path, struct stat* status);
int pario_truncate(pario_volume* volume, const char* path, uint64_t length);
int pario_unlink(pario_volume* volume, const char* path);
int pario_mkdir(pario_volume* volume, const char* path, mode_t mode);
int pario_rmdir(pario_volume* volume, const char* path);
int pario_rename(pario_volume* volume, const char* from, const char* to);

/* Calls `each` for every entry, in no particular order, until it returns a value other than 0,
 * which is returned. st_mode has only the type of the file. */
typedef int pario_entry_function(void* context, const char* name, const struct stat* status);
int pario_read_directory(pario_volume* volume, const char* path, pario_entry_function* each,
                         void* context);

typedef struct pario_space {
  uint64_t capacity;
  uint64_t used;
  uint64_t files;
} pario_space;

/* Returns the space of the whole volume, or of one server: 0 .. pario_servers() - 1. */
int pario_get_space(pario_volume* volume, pario_space* space);
int pario_get_server_space(pario_volume* volume, uint32_t server, pario_space* space);

/* The traffic of one server since it was started, for all clients. With two copies it is the total
 * traffic of the server that leads the part. */
typedef struct pario_traffic {
  uint64_t requests;
  uint64_t bytes_read;
  uint64_t bytes_written;
  uint64_t pm_bytes;      /* of the bytes read and written: over PM */
  uint64_t pm_clients;    /* connections whose data uses PM now */
  uint64_t tcp_fallbacks; /* connections that tried PM and use TCP */
} pario_traffic;

int pario_get_server_traffic(pario_volume* volume, uint32_t server, pario_traffic* traffic);
/* All servers of the volume remove its data and exit. */
int pario_destroy_volume(pario_volume* volume);
uint32_t pario_servers(const pario_volume* volume);
uint64_t pario_stripe(const pario_volume* volume);

#ifdef __cplusplus
}
#endif

#endif /* PARIO_H */
