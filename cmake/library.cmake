# The C++ library: liboomscope.a, the headers of include/oomscope/, and find_package(oomscope) for its users.
#
# One archive holds all layers below the command line, and our copy of fmt. What it links is named as -lzstd -lz -llzma,
# so a user's machine may have those as archives or as shared libraries.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(library_objects "")
foreach(layer ${OOMSCOPE_LAYERS})
  get_target_property(layer_type oomscope_${layer} TYPE)
  if(NOT layer STREQUAL "cli" AND layer_type STREQUAL "STATIC_LIBRARY")
    list(APPEND library_objects $<TARGET_OBJECTS:oomscope_${layer}>)
  endif()
endforeach()
if(NOT library_objects)
  return()
endif()
if(TARGET oomscope_fmt)
  list(APPEND library_objects $<TARGET_OBJECTS:oomscope_fmt>)
endif()

add_library(oomscope_library STATIC EXCLUDE_FROM_ALL ${library_objects})
add_library(oomscope::oomscope ALIAS oomscope_library)
set_target_properties(oomscope_library PROPERTIES OUTPUT_NAME oomscope EXPORT_NAME oomscope LINKER_LANGUAGE CXX)
target_compile_features(oomscope_library INTERFACE cxx_std_20)
target_include_directories(oomscope_library INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(oomscope_library INTERFACE zstd z lzma Threads::Threads)
if(NOT OOMSCOPE_STATIC)
  target_link_libraries(oomscope_library INTERFACE fmt::fmt)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/oomscope)
file(WRITE ${PROJECT_BINARY_DIR}/oomscope-config.cmake "include(CMakeFindDependencyMacro)
find_dependency(Threads)
if(NOT \"${OOMSCOPE_STATIC}\")
  find_dependency(fmt)
endif()
include(\${CMAKE_CURRENT_LIST_DIR}/oomscope-targets.cmake)
")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/oomscope-config-version.cmake COMPATIBILITY SameMinorVersion)
# OPTIONAL: a build of the program alone can be installed too.
install(TARGETS oomscope_library EXPORT oomscope ARCHIVE COMPONENT library OPTIONAL)
install(EXPORT oomscope NAMESPACE oomscope:: FILE oomscope-targets.cmake DESTINATION ${package_folder} COMPONENT library)
install(FILES ${PROJECT_BINARY_DIR}/oomscope-config.cmake ${PROJECT_BINARY_DIR}/oomscope-config-version.cmake
        DESTINATION ${package_folder} COMPONENT library)
install(DIRECTORY include/oomscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
