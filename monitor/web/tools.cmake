# What the tests of the page need of npm: the compiler of TypeScript, which checks the types, and
# Playwright. They are installed beside the build, so that the source tree stays as it is.
set(work ${CMAKE_CURRENT_BINARY_DIR}/npm)
set(tools ${CMAKE_CURRENT_BINARY_DIR}/tools.stamp)
add_custom_command(
  OUTPUT ${tools}
  COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/tools.sh ${CMAKE_CURRENT_SOURCE_DIR} ${work}
  COMMAND ${CMAKE_COMMAND} -E touch ${tools}
  DEPENDS tools.sh package.json package-lock.json
  COMMENT "tools of the page's tests"
  VERBATIM)
add_custom_target(web_tools DEPENDS ${tools})
add_dependencies(score_tests web_tools)
add_dependencies(score_test_helpers web_tools)

foreach(name IN ITEMS filling lock own types)
  add_test(NAME web.${name}
    COMMAND ${SCORE_NODE} --test ${CMAKE_CURRENT_SOURCE_DIR}/test/${name}.test.mjs)
  set_tests_properties(web.${name} PROPERTIES LABELS unit TIMEOUT 1800
    ENVIRONMENT "SCORE_NODE_MODULES=${work}/node_modules;SCORE_ESBUILD=${SCORE_ESBUILD}")
endforeach()
set_tests_properties(web.lock PROPERTIES LABELS tidy)
