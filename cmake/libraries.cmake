# Libraries of the system, under one name each, whatever the release of Debian or Ubuntu calls them.
#
# With OOMSCOPE_STATIC the archives (.a) are taken, so that the program carries them. Where an archive is missing the
# shared library serves, and a message says so.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost 1.74 REQUIRED)

# oomscope::fmt. Debian has no archive of fmt: see fmt_static.cc.
add_library(oomscope_fmt_choice INTERFACE)
if(NOT OOMSCOPE_STATIC)
  target_link_libraries(oomscope_fmt_choice INTERFACE fmt::fmt)
elseif(fmt_VERSION VERSION_GREATER_EQUAL 8 AND fmt_VERSION VERSION_LESS 11)
  add_library(oomscope_fmt STATIC cmake/fmt_static.cc)
  get_target_property(fmt_include_folders fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  if(fmt_include_folders)
    target_include_directories(oomscope_fmt SYSTEM PUBLIC ${fmt_include_folders})
  endif()
  target_link_libraries(oomscope_fmt_choice INTERFACE oomscope_fmt)
else()
  message(STATUS "fmt ${fmt_VERSION}: used header-only, which compiles slowly (known to cmake/fmt_static.cc: 8 to 10)")
  target_link_libraries(oomscope_fmt_choice INTERFACE fmt::fmt-header-only)
endif()
add_library(oomscope::fmt ALIAS oomscope_fmt_choice)

# oomscope::compression: zstd, zlib and lzma.
add_library(oomscope_compression INTERFACE)
add_library(oomscope::compression ALIAS oomscope_compression)
foreach(name zstd z lzma)
  if(OOMSCOPE_STATIC)
    find_library(OOMSCOPE_LIB_${name} NAMES lib${name}.a ${name} REQUIRED)
    if(NOT OOMSCOPE_LIB_${name} MATCHES "\\.a$")
      message(STATUS "no archive of ${name}: the program will need its shared library")
    endif()
  else()
    find_library(OOMSCOPE_SHARED_LIB_${name} NAMES ${name} REQUIRED)
    set(OOMSCOPE_LIB_${name} ${OOMSCOPE_SHARED_LIB_${name}})
  endif()
  target_link_libraries(oomscope_compression INTERFACE ${OOMSCOPE_LIB_${name}})
endforeach()
target_link_libraries(oomscope_compression INTERFACE Threads::Threads)
