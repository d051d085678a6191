# Tests: units beside the code, golden cases, fuzz targets over their corpus, checks of the tree.
if(NOT OOMSCOPE_TESTS)
  return()
endif()
find_package(GTest QUIET)
if(NOT GTest_FOUND)
  if(OOMSCOPE_TESTS STREQUAL "AUTO")
    message(STATUS "GoogleTest is not installed: no tests are built (make test installs it)")
    return()
  endif()
  message(FATAL_ERROR "GoogleTest is not installed; run: make test (it installs what it lacks)")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
enable_testing()
include(GoogleTest)

# Tests of a sanitizer build carry its name, since make test shows them in one list with those of the release build.
set(test_prefix "")
if(OOMSCOPE_LIBFUZZER)
  set(test_prefix "libfuzzer.")
elseif(OOMSCOPE_SANITIZE)
  string(REGEX REPLACE "^([a-z]+).*" "\\1." test_prefix ${OOMSCOPE_SANITIZE})
endif()

# ---- units: src/LAYER/x_test.cc -> bin/LAYER_test, one ctest entry a test ----------------------------------------
add_library(oomscope_test_support INTERFACE)
target_include_directories(oomscope_test_support INTERFACE ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(
  oomscope_test_support INTERFACE OOMSCOPE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
                                  OOMSCOPE_DEFAULT_DATA="${PROJECT_SOURCE_DIR}/../shared/data")
add_custom_target(unit_tests)
function(oomscope_unit_test name)
  cmake_parse_arguments(test "" "COST" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT test_COST)
    set(test_COST 0)
  endif()
  add_executable(${name} ${test_SOURCES})
  target_link_libraries(${name} PRIVATE oomscope_test_support ${test_LIBRARIES} GTest::gtest_main)
  # With less optimisation than what they test: most are compiled more often than they run.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  gtest_discover_tests(${name} TEST_PREFIX ${test_prefix}${name}. DISCOVERY_TIMEOUT 120
                       PROPERTIES LABELS unit COST ${test_COST})
  add_dependencies(unit_tests ${name})
endfunction()

set(OOMSCOPE_TEST_LAYERS all CACHE STRING "Layers whose unit tests are built: all, or a list")
foreach(layer ${OOMSCOPE_LAYERS})
  if(NOT OOMSCOPE_TEST_LAYERS STREQUAL "all" AND NOT layer IN_LIST OOMSCOPE_TEST_LAYERS)
    continue()
  endif()
  file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*_test.cc)
  if(test_sources)
    oomscope_unit_test(${layer}_test SOURCES ${test_sources} LIBRARIES oomscope_${layer})
  endif()
endforeach()

# ---- fuzz: tests/fuzz/fuzz_NAME.cc over tests/fuzz/corpus/NAME/ ---------------------------------------------------
# With clang and OOMSCOPE_LIBFUZZER, libFuzzer drives a target. Elsewhere corpus_driver.cc does: it replays the corpus
# and then, for some seconds, simple mutations of it. That needs no clang, and runs under the sanitizers in make test.
# A target links the layers that it includes.
set(OOMSCOPE_FUZZ_SECONDS 10 CACHE STRING "Seconds of random input for each fuzz target in ctest")
set(OOMSCOPE_SANITIZED_BUILDS "" CACHE STRING "Build folders whose tests run with those of this build (make test)")
add_custom_target(fuzz_targets)
file(GLOB fuzz_sources CONFIGURE_DEPENDS tests/fuzz/fuzz_*.cc)
if(OOMSCOPE_SANITIZED_BUILDS)
  set(fuzz_sources "") # they run there
endif()
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^fuzz_" "" corpus ${name})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
  if(NOT EXISTS ${corpus}) # what begins with a snapshot shares the reader's
    set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/snapshot)
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE oomscope_test_support)
  oomscope_link_included_layers(${name} ${source})
  add_dependencies(fuzz_targets ${name})
  set(fuzz_corpora "")
  if(EXISTS ${corpus})
    set(fuzz_corpora ${corpus})
  endif()
  if(OOMSCOPE_LIBFUZZER)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # New inputs go to the first folder, which must not be the one in the repository.
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/corpus/${name})
    set(fuzz_arguments -max_total_time=${OOMSCOPE_FUZZ_SECONDS} -rss_limit_mb=2048 -timeout=25 -print_final_stats=1
                       ${PROJECT_BINARY_DIR}/corpus/${name})
  else()
    target_sources(${name} PRIVATE tests/fuzz/corpus_driver.cc)
    set(fuzz_arguments --seconds=${OOMSCOPE_FUZZ_SECONDS})
  endif()
  add_test(NAME ${test_prefix}fuzz.${name} COMMAND ${name} ${fuzz_arguments} ${fuzz_corpora}
           WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(${test_prefix}fuzz.${name} PROPERTIES LABELS fuzz COST 20)
endforeach()

# The whole-program tests and the checks run once, in the build that ships.
if(OOMSCOPE_SANITIZE)
  return()
endif()

# One ctest run for all of make test: the tests of the sanitizer builds are read into this list.
file(WRITE ${PROJECT_BINARY_DIR}/sanitized_tests.cmake "")
foreach(folder ${OOMSCOPE_SANITIZED_BUILDS})
  file(APPEND ${PROJECT_BINARY_DIR}/sanitized_tests.cmake "subdirs(\"${folder}\")\n")
endforeach()
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/sanitized_tests.cmake)

# ---- golden and fidelity: the program on real input ---------------------------------------------------------------
# COST is about the seconds of a long test: ctest begins with those, so that none is left alone at the end.
# Exit code 77 means skipped, with the reason printed: most often recordings that are not on this machine.
function(oomscope_script_test name label)
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 TIMEOUT 900)
endfunction()

if(TARGET oomscope)
  file(GLOB golden_commands CONFIGURE_DEPENDS tests/golden/*/cmd)
  foreach(command ${golden_commands})
    get_filename_component(folder ${command} DIRECTORY)
    get_filename_component(case ${folder} NAME)
    oomscope_script_test(golden.${case} golden tests/golden/run_golden.py --program $<TARGET_FILE:oomscope> ${case})
  endforeach()
  oomscope_script_test(golden.in-chinese golden tests/golden/chinese_test.py --program $<TARGET_FILE:oomscope>)
  add_test(NAME python.package COMMAND ${PROJECT_SOURCE_DIR}/tools/python_tests.sh $<TARGET_FILE:oomscope>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(python.package PROPERTIES LABELS python SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 200)
  oomscope_script_test(check.docs check tools/check_docs.py --program $<TARGET_FILE:oomscope>)
  include(cmake/web_tests.cmake)
endif()

file(GLOB fidelity_tests CONFIGURE_DEPENDS tests/fidelity/*_test.cc)
if(fidelity_tests)
  oomscope_unit_test(fidelity_test SOURCES ${fidelity_tests} LIBRARIES oomscope_analysis COST 100)
endif()
if(TARGET oomscope)
  file(GLOB fidelity_scripts CONFIGURE_DEPENDS tests/fidelity/*_test.py)
  foreach(script ${fidelity_scripts})
    get_filename_component(case ${script} NAME_WE)
    oomscope_script_test(fidelity.${case} fidelity ${script} --program $<TARGET_FILE:oomscope>)
    set_tests_properties(fidelity.${case} PROPERTIES COST 50)
  endforeach()
endif()
# The reader against pickle.load, on recordings of every vintage of the format.
add_executable(dump_snapshot tools/dump_snapshot.cc)
target_link_libraries(dump_snapshot PRIVATE oomscope_evidence)
# The engine against the requests of tools/oracle.
add_executable(replay_requests tools/replay_requests.cc)
target_link_libraries(replay_requests PRIVATE oomscope_replay)
file(GLOB vintages CONFIGURE_DEPENDS tests/data/oracle/*.pickle.zst)
oomscope_script_test(fidelity.reader fidelity tests/support/check_reader.py $<TARGET_FILE:dump_snapshot> ${vintages})
if(EXISTS ${PROJECT_SOURCE_DIR}/tests/fidelity/CMakeLists.txt)
  add_subdirectory(tests/fidelity)
endif()

# ---- checks of the tree -------------------------------------------------------------------------------------------
oomscope_script_test(check.layers check tools/check_layers.py)
oomscope_script_test(check.format check tools/check_format.py)
oomscope_script_test(check.mutants check tools/mutants.py --list)
file(GLOB tool_tests CONFIGURE_DEPENDS tests/support/*_test.py)
foreach(script ${tool_tests})
  get_filename_component(case ${script} NAME_WE)
  oomscope_script_test(tools.${case} check ${script})
endforeach()
if(TARGET oomscope AND OOMSCOPE_STATIC)
  add_test(NAME check.glibc COMMAND ${PROJECT_SOURCE_DIR}/tools/check_glibc.sh $<TARGET_FILE:oomscope>)
  set_tests_properties(check.glibc PROPERTIES LABELS check SKIP_RETURN_CODE 77)
  # The same link as the program's, and throwing: the shim for _dl_find_object must find our frames.
  add_executable(glibc_floor_test tests/support/glibc_floor_main.cc cmake/glibc_floor.c)
  target_link_libraries(glibc_floor_test PRIVATE oomscope_options Threads::Threads)
  target_link_options(glibc_floor_test PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  add_test(NAME unit.glibc_floor COMMAND glibc_floor_test)
  add_test(NAME check.glibc_floor_test COMMAND ${PROJECT_SOURCE_DIR}/tools/check_glibc.sh $<TARGET_FILE:glibc_floor_test>)
  set_tests_properties(unit.glibc_floor check.glibc_floor_test PROPERTIES LABELS check SKIP_RETURN_CODE 77)
endif()

# ---- the CMake package: examples/*/ built against an installed copy ------------------------------------------------
file(GLOB package_examples CONFIGURE_DEPENDS examples/*/CMakeLists.txt)
if(TARGET oomscope_library AND package_examples)
  set_target_properties(oomscope_library PROPERTIES EXCLUDE_FROM_ALL OFF)
  add_test(NAME check.package COMMAND ${PROJECT_SOURCE_DIR}/tools/check_package.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(check.package PROPERTIES LABELS check SKIP_RETURN_CODE 77)
endif()
