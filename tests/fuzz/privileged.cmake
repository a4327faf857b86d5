# What runs as root is fuzzed together with its main program, whose system calls with effects outside
# are replaced: see the heads of the sources.
set(privileged ${PROJECT_SOURCE_DIR}/scored/privileged)

function(score_replace source)
  set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "${ARGN}")
endfunction()

score_fuzz(launcher LONG SOURCES privileged/launcher.cpp ${privileged}/launcher/server.cpp
  LIBS score::core PCH none)

score_fuzz(rings LONG SOURCES privileged/rings.cpp ${privileged}/rings/main.cpp LIBS score::core PCH none)
score_replace(${privileged}/rings/main.cpp main=rings_main accept4=accept_fuzzed)

score_fuzz(ring_guard LONG SOURCES privileged/ring_guard.cpp ${privileged}/ring_guard/programs.cpp
  LIBS score::core PCH none)

score_fuzz(device_guard LONG SOURCES privileged/device_guard.cpp ${privileged}/device_guard/main.cpp
  LIBS score::device_guard PCH none)
score_replace(${privileged}/device_guard/main.cpp main=device_guard_main SCORE_VERSION="fuzz")

score_fuzz(thaw LONG SOURCES privileged/thaw.cpp ${privileged}/thaw/main.cpp ${privileged}/thaw/thaw.cpp
  LIBS score::core PCH none)
score_replace(${privileged}/thaw/main.cpp main=thaw_main kill=kill_recorded)

score_fuzz(scratch_directory LONG SOURCES privileged/scratch_directory.cpp
  ${privileged}/scratch_directory/main.cpp LIBS score::core PCH none)
score_replace(${privileged}/scratch_directory/main.cpp main=scratch_directory_main)

score_fuzz(hooks LONG SOURCES privileged/hooks.cpp ${privileged}/hooks/request.cpp
  LIBS score::hooks_config score::core PCH none)

score_fuzz(park LONG SOURCES privileged/park.cpp ${privileged}/park/regions.cpp LIBS score::core PCH none)

score_fuzz(checkpoint LONG SOURCES privileged/checkpoint.cpp ${privileged}/checkpoint/server.cpp
  ${privileged}/checkpoint/attempt.cpp ${privileged}/launcher/child.cpp ${privileged}/launcher/identity.cpp
  LIBS score::core PCH none)
