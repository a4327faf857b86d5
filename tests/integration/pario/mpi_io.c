/* All ranks write one file and read what other ranks wrote. Arguments: a directory per rank modulo
 * their number, which are mounts of one volume. Independent contiguous and collective strided
 * accesses, a shared file pointer, and a size. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRecord = 5000, kRecords = 40, kBlock = 300000 };

static int rank, size;
static MPI_Info hints;

static void check(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File open_file(const char* directory, const char* name) {
  char path[4096];
  MPI_File file;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file), path);
  return file;
}

static char pattern(int writer, long i) {
  return (char)(writer * 37 + i * 11 + i / 251);
}

static void fill(char* bytes, int writer, long length) {
  for (long i = 0; i < length; ++i) bytes[i] = pattern(writer, i);
}

static int is_pattern(const char* bytes, int writer, long length) {
  for (long i = 0; i < length; ++i) {
    if (bytes[i] != pattern(writer, i)) return 0;
  }
  return 1;
}

static void blocks(const char* directory) {
  char* bytes = malloc(kBlock);
  MPI_File file = open_file(directory, "blocks");
  const int other = (rank + 1) % size;
  MPI_Status status;
  int count = 0;
  fill(bytes, rank, kBlock);
  check(MPI_File_write_at(file, (MPI_Offset)rank * kBlock, bytes, kBlock, MPI_BYTE,
                          MPI_STATUS_IGNORE),
        "write_at");
  check(MPI_File_sync(file), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_sync(file), "sync");
  check(MPI_File_read_at(file, (MPI_Offset)other * kBlock, bytes, kBlock, MPI_BYTE, &status),
        "read_at");
  MPI_Get_count(&status, MPI_BYTE, &count);
  expect(count == kBlock && is_pattern(bytes, other, kBlock), "the block of another rank is wrong");
  check(MPI_File_close(&file), "close");
  free(bytes);
}

static void strided(const char* directory) {
  char* bytes = malloc((size_t)kRecord * kRecords);
  MPI_File file = open_file(directory, "strided");
  MPI_Datatype type;
  const int other = (rank + 1) % size;
  MPI_Type_vector(kRecords, kRecord, kRecord * size, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  check(
      MPI_File_set_view(file, (MPI_Offset)rank * kRecord, MPI_BYTE, type, "native", MPI_INFO_NULL),
      "set_view");
  fill(bytes, rank, (long)kRecord * kRecords);
  check(MPI_File_write_all(file, bytes, kRecord * kRecords, MPI_BYTE, MPI_STATUS_IGNORE),
        "write_all");
  check(MPI_File_sync(file), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_sync(file), "sync");
  check(
      MPI_File_set_view(file, (MPI_Offset)other * kRecord, MPI_BYTE, type, "native", MPI_INFO_NULL),
      "set_view");
  check(MPI_File_read_all(file, bytes, kRecord * kRecords, MPI_BYTE, MPI_STATUS_IGNORE),
        "read_all");
  expect(is_pattern(bytes, other, (long)kRecord * kRecords),
         "the records of another rank are wrong");
  check(MPI_File_close(&file), "close");
  MPI_Type_free(&type);
  free(bytes);
}

/* Independent strided writes: MPI may read, change and write back what lies between, under a lock.
 */
static void independent(const char* directory) {
  char* bytes = malloc((size_t)kRecord * kRecords);
  MPI_File file = open_file(directory, "independent");
  MPI_Datatype type;
  MPI_Type_vector(kRecords, kRecord, kRecord * size, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  check(
      MPI_File_set_view(file, (MPI_Offset)rank * kRecord, MPI_BYTE, type, "native", MPI_INFO_NULL),
      "set_view");
  for (int round = 0; round < 5; ++round) {
    fill(bytes, rank + round, (long)kRecord * kRecords);
    check(MPI_File_write_at(file, 0, bytes, kRecord * kRecords, MPI_BYTE, MPI_STATUS_IGNORE),
          "write_at");
  }
  check(MPI_File_sync(file), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_read_at(file, 0, bytes, kRecord * kRecords, MPI_BYTE, MPI_STATUS_IGNORE),
        "read_at");
  expect(is_pattern(bytes, rank + 4, (long)kRecord * kRecords),
         "own records are wrong: another rank has undone them");
  check(MPI_File_close(&file), "close");
  MPI_Type_free(&type);
  free(bytes);
}

static void sizes(const char* directory) {
  MPI_File file = open_file(directory, "sizes");
  MPI_Offset length = 0;
  check(MPI_File_set_size(file, 1234567), "set_size");
  check(MPI_File_get_size(file, &length), "get_size");
  expect(length == 1234567, "the size is wrong");
  check(MPI_File_close(&file), "close");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* directory = argv[1 + rank % (argc - 1)];
  MPI_Info_create(&hints);
  /* Locks hold within one mount. */
  if (argc > 2) MPI_Info_set(hints, "romio_ds_write", "disable");
  blocks(directory);
  strided(directory);
  independent(directory);
  sizes(directory);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks: all data is right\n", size);
  MPI_Info_free(&hints);
  MPI_Finalize();
  return 0;
}
