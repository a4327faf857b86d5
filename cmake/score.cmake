# Helpers for the folders' CMakeLists.txt.
#
#   score_library(gang SOURCES a.cpp b.cpp LIBS score::core)       static library score_gang, score::gang
#   score_executable(scored SOURCES main.cpp LIBS score::base)     ${build}/bin/scored
#                    SHARED_CXX: with the shared C++ library, as prometheus-cpp needs it
#   score_test(gang_test SOURCES a_test.cpp LIBS score::gang)      GoogleTest program, label "unit"
#   score_test(gang_flow SOURCES f_test.cpp LIBS score::gang LABEL flow TIMEOUT 600)
#              LONG: tests whose suite's name begins with "Long" belong to the long tier
#
# Every function takes PCH core|asio|none: "core" precompiles standard and fmt headers, "asio" adds
# base/async/asio.hpp. Default: asio if LIBS lead to score::asio, else core. Both need fmt, which
# score::core brings; targets without score::core (pmlib, C programs) say PCH none.
#
# With SCORE_UNITY the sources of a library or a test are compiled in batches, since most of a
# compilation is headers and the templates that they bring. score_alone(a.cpp) leaves a source out
# whose local names clash with those of another.

# Sets result to TRUE if a target of libs links wanted, itself or through others.
function(score_leads_to result wanted libs)
  set(seen ${libs})
  while(libs)
    list(POP_FRONT libs lib)
    if(NOT TARGET "${lib}")
      continue()
    endif()
    get_target_property(next ${lib} INTERFACE_LINK_LIBRARIES)
    foreach(other IN LISTS next)
      if(NOT other IN_LIST seen)
        list(APPEND seen ${other})
        list(APPEND libs ${other})
      endif()
    endforeach()
  endwhile()
  set(${result} FALSE PARENT_SCOPE)
  if("${wanted}" IN_LIST seen)
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Chooses and attaches the precompiled header. They are made by base/pch/CMakeLists.txt; suffix is
# empty, or "_test" for those with GoogleTest.
function(score_use_pch target kind libs suffix)
  if(NOT SCORE_PCH OR kind STREQUAL "none")
    return()
  endif()
  if(NOT kind)
    set(kind core)
    score_leads_to(asio score::asio "${libs}")
    if(asio)
      set(kind asio)
    endif()
  endif()
  if(TARGET score_pch_${kind}${suffix})
    target_precompile_headers(${target} REUSE_FROM score_pch_${kind}${suffix})
  endif()
endfunction()

function(score_batch target)
  if(SCORE_UNITY OR (SCORE_UNITY_TESTS AND "${ARGV1}" STREQUAL test))
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # g++ takes the included sources for headers, where local types in others would be a fault.
    target_compile_options(${target} PRIVATE
      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Code that waits for people, and the sources of tests: a quarter less time to compile than with -O2.
function(score_optimize_less target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Installs a program that runs as the users of jobs and holds something of the system. Users may not
# read it, so the kernel lets them trace none of its processes, from exec on (ADR 0106).
function(score_install_unreadable target folder)
  install(TARGETS ${target} RUNTIME DESTINATION ${folder}
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_EXECUTE WORLD_EXECUTE)
endfunction()

function(score_alone)
  set_source_files_properties(${ARGV} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(score_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PCH" "SOURCES;LIBS;PRIVATE_LIBS")
  add_library(score_${name} STATIC ${arg_SOURCES})
  add_library(score::${name} ALIAS score_${name})
  target_link_libraries(score_${name} PUBLIC score_options ${arg_LIBS} PRIVATE ${arg_PRIVATE_LIBS})
  score_use_pch(score_${name} "${arg_PCH}" "${arg_LIBS};${arg_PRIVATE_LIBS}" "")
  score_batch(score_${name})
endfunction()

function(score_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SHARED_CXX" "PCH" "SOURCES;LIBS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE score_options ${arg_LIBS})
  if(SCORE_STATIC_LIBS AND NOT SCORE_SANITIZE)
    # Packed relocations: half a megabyte less to read at the start (glibc 2.36, binutils 2.38 on x86-64).
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
      target_link_options(${name} PRIVATE -Wl,-z,pack-relative-relocs)
    endif()
    if(NOT arg_SHARED_CXX)
      target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
    endif()
  endif()
  score_use_pch(${name} "${arg_PCH}" "${arg_LIBS}" "")
endfunction()

# Programs that only tests run are built by the target "score_tests", not by "all": they are two fifths
# of the whole, and users of the project need none of them. "score_unit_tests" are those of the label unit,
# and "score_test_helpers" those that tests start.
add_custom_target(score_tests)
add_custom_target(score_unit_tests)
add_custom_target(score_test_helpers)
find_package(GTest QUIET)
score_part(GTest_FOUND "unit tests" "libgtest-dev, as ./try test does")
# score_only_for_tests(TARGET [LABEL]): without a label it is a program that tests start.
function(score_only_for_tests target)
  set_target_properties(${target} PROPERTIES
    EXCLUDE_FROM_ALL ON RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  add_dependencies(score_tests ${target})
  if(ARGC EQUAL 1)
    add_dependencies(score_test_helpers ${target})
  elseif(ARGV1 STREQUAL unit)
    add_dependencies(score_unit_tests ${target})
  endif()
endfunction()

# Makes tests of ctest of the TEST()s that the filter takes. Lists, which gtest_discover_tests() cannot take as
# properties, are set by a script that ctest reads after its list.
function(score_list_tests program list timeout filter labels env)
  gtest_discover_tests(${program} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 TEST_PREFIX ${program}.
    TEST_FILTER ${filter} TEST_LIST ${list} PROPERTIES TIMEOUT ${timeout})
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${list}_properties.cmake)
  file(GENERATE OUTPUT ${script} CONTENT "if(${list})
  set_tests_properties(\${${list}} PROPERTIES LABELS \"${labels}\" ENVIRONMENT \"${env}\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# One program per module and label; every TEST() in it is a test of ctest. Tests are listed when
# ctest runs, not when the program is linked, so that building never executes anything.
function(score_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG" "PCH;LABEL;TIMEOUT" "SOURCES;LIBS;ENV")
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1200)
  endif()
  add_executable(${name} ${arg_SOURCES})
  if(NOT GTest_FOUND)  # a name that the callers can add properties to, and no more
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  include(GoogleTest)
  score_only_for_tests(${name} ${arg_LABEL})
  target_link_libraries(${name} PRIVATE score_options ${arg_LIBS} GTest::gtest GTest::gtest_main)
  score_use_pch(${name} "${arg_PCH}" "${arg_LIBS}" _test)
  score_batch(${name} test)
  score_optimize_less(${name})
  string(REPLACE "\\;" ";" env "${arg_ENV}")
  if(arg_LONG)
    score_list_tests(${name} ${name}_tests ${arg_TIMEOUT} -Long* "${arg_LABEL}" "${env}")
    score_list_tests(${name} ${name}_long_tests ${arg_TIMEOUT} Long* "${arg_LABEL};long" "${env}")
  else()
    score_list_tests(${name} ${name}_tests ${arg_TIMEOUT} "*" "${arg_LABEL}" "${env}")
  endif()
endfunction()
