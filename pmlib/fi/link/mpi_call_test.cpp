#include "pmlib/fi/link/mpi_call.hpp"

#include <gtest/gtest.h>

namespace score::pm::fi {
namespace {

TEST(MpiCall, OnlyFunctionsThatEndByAMessageWait) {
  EXPECT_EQ(wait_of("MPI_Recv"), MpiWait::Receive);
  EXPECT_EQ(wait_of("MPI_Recv_c"), MpiWait::Receive);
  EXPECT_EQ(wait_of("MPI_Waitall"), MpiWait::Request);
  EXPECT_EQ(wait_of("MPI_Barrier"), MpiWait::Collective);
  for (const char* name : {"MPI_Test", "MPI_Testall", "MPI_Iprobe", "MPI_Improbe", "MPI_Init",
                           "MPI_Finalize", "MPI_File_write", "MPI_Comm_accept", "MPI_", "", "Recv",
                           "MPI_Receive", "MPI_Win_test", "pmi_barrier"}) {
    EXPECT_EQ(wait_of(name), MpiWait::None) << name;
  }
}

TEST(MpiCall, OutsideOfAnMpiThereIsNone) {
  const MpiCall call = find_mpi_call();
  EXPECT_EQ(call.name[0], '\0');
  EXPECT_EQ(call.wait, MpiWait::None);
}

TEST(MpiCall, TagsAreReadOnlyWhereTheyAreTheProgramsOwn) {
  constexpr std::uint64_t kContext = std::uint64_t{6} << 32;
  EXPECT_EQ(mpi_tag(MpiLibrary::Mpich, kContext | 77, 0), 77);
  EXPECT_EQ(mpi_tag(MpiLibrary::Mpich, kContext | 77, 0x7fff'ffff), -1) << "any";
  EXPECT_EQ(mpi_tag(MpiLibrary::Mpich, kContext | 0x8000'0000 | 2, 0), -1) << "its own";
  EXPECT_EQ(mpi_tag(MpiLibrary::OpenMpi, kContext | 77, 0), 77);
  EXPECT_EQ(mpi_tag(MpiLibrary::OpenMpi, kContext | 0xffff'fff0, 0), -1) << "its own";
  EXPECT_EQ(mpi_tag(MpiLibrary::Other, 77, 0), -1);
}

}  // namespace
}  // namespace score::pm::fi
