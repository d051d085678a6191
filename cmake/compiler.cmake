# Warnings and sanitizers, for our own code only.
add_library(oomscope_options INTERFACE)
target_include_directories(oomscope_options INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_options(oomscope_options INTERFACE -Wall -Wextra -Wshadow -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Position-independent functions may then be inlined as any other: nobody replaces ours at load time.
  target_compile_options(oomscope_options INTERFACE -fno-semantic-interposition)
endif()
if(OOMSCOPE_WERROR)
  target_compile_options(oomscope_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # False alarms inside libstdc++ (std::string and std::variant at -O2); GCC's own tracker calls them so.
  target_compile_options(oomscope_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()

if(OOMSCOPE_SANITIZE)
  # Every object, third-party code that we compile included: a mixed program misses errors.
  add_compile_options(-fsanitize=${OOMSCOPE_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${OOMSCOPE_SANITIZE})
endif()
if(OOMSCOPE_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "OOMSCOPE_LIBFUZZER needs clang; configure with --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
