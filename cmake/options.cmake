# What every target of the project is compiled with. Linked privately by score_library() and its
# relatives, so that nothing of it leaks into users of the installed C library.

option(SCORE_WERROR "Warnings are errors" OFF)
option(SCORE_PCH "Precompile the heavy standard and Asio headers" ON)
# A clean build becomes shorter; a changed source compiles its batch. Release builds are rarely made in parts.
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  set(score_unity_tests OFF)
else()
  set(score_unity_tests ON)
endif()
option(SCORE_UNITY "Compile the sources of a library or a test in batches" ON)
option(SCORE_UNITY_TESTS "Compile the sources of a test in batches" ${score_unity_tests})
# A node daemon has 8 MB in all; shared OpenSSL, protobuf and C++ libraries together take more.
option(SCORE_STATIC_LIBS "Link OpenSSL, protobuf and the C++ library statically into programs" ON)
set(SCORE_SANITIZE "" CACHE STRING "Value of -fsanitize=, e.g. address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
# SCORE_ASSERT stays on in release builds, and so does assert(): no NDEBUG anywhere.
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)

add_library(score_options INTERFACE)
target_compile_features(score_options INTERFACE cxx_std_23)
set_property(TARGET score_options PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR})
target_compile_definitions(score_options INTERFACE
  _GNU_SOURCE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_compile_options(score_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual>
  -ffunction-sections -fdata-sections $<$<BOOL:${SCORE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # g++ 12 reports a false overlap for std::string's operator+ (GCC bug 105651). Warnings that it also
  # gives wrongly, for optional and string, stay warnings.
  target_compile_options(score_options INTERFACE -Wno-restrict -Wno-error=maybe-uninitialized
    -Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread
    -Wno-error=free-nonheap-object)
else()
  # clang 16, for fuzzing and clang-tidy: it can compile libstdc++ 12's std::expected, but does not
  # announce the version of concepts that the header asks for.
  target_compile_definitions(score_options INTERFACE __cpp_concepts=202002L)
  target_compile_options(score_options INTERFACE -Wno-builtin-macro-redefined
    -Wno-macro-redefined -Wno-unknown-warning-option)
endif()
target_link_options(score_options INTERFACE -Wl,--gc-sections -Wl,--as-needed)

if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT SCORE_SANITIZE)
  # _FORTIFY_SOURCE is an option here: CMake puts definitions before options, so before -U too.
  set(control_flow_x86_64 -fcf-protection)
  set(control_flow_aarch64 -mbranch-protection=standard)
  target_compile_options(score_options INTERFACE
    -fstack-protector-strong -fstack-clash-protection ${control_flow_${CMAKE_SYSTEM_PROCESSOR}}
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  target_compile_definitions(score_options INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(score_options INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
# The same bytes from any folder: file names without the path of the tree (the linker needs the option too,
# for link-time optimization), and names from the object's name where the compiler makes them up at random.
# Off by default: with it folders cannot share a compiler cache.
option(SCORED_REPRODUCIBLE "Release builds hold neither the path of the tree nor random names" OFF)
set(score_path_map "")
if(SCORED_REPRODUCIBLE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(score_path_map -ffile-prefix-map=${PROJECT_SOURCE_DIR}=/usr/src/scored)
  add_compile_options(${score_path_map})
  add_link_options(${score_path_map})
  foreach(language IN ITEMS C CXX)
    string(REPLACE "-o <OBJECT>" "-frandom-seed=<OBJECT> -o <OBJECT>"
      CMAKE_${language}_COMPILE_OBJECT "${CMAKE_${language}_COMPILE_OBJECT}")
  endforeach()
endif()
if(SCORE_SANITIZE)
  target_compile_options(score_options INTERFACE
    -fsanitize=${SCORE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(score_options INTERFACE -fsanitize=${SCORE_SANITIZE})
endif()

# The launcher uses ccache where it is installed, which it looks up for each compilation: a command that
# changed with ccache's arrival would compile everything again.
foreach(language IN ITEMS C CXX)
  if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/launch_compiler ${PROJECT_SOURCE_DIR})
  endif()
endforeach()
