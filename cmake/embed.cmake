# Files that the program carries, as they are: the built viewer, and a font for pictures without a browser.
find_file(OOMSCOPE_FONT Roboto-Regular.ttf
          PATHS /usr/share/fonts/truetype/roboto/unhinted/RobotoTTF /usr/share/fonts/truetype/roboto REQUIRED)
find_path(OOMSCOPE_STB_INCLUDE stb/stb_truetype.h REQUIRED)
set(page ${PROJECT_SOURCE_DIR}/web/dist/report.html)

set(functions "")
foreach(pair "page:${page}" "font:${OOMSCOPE_FONT}")
  string(REGEX MATCH "^[a-z]+" name ${pair})
  string(REGEX REPLACE "^[a-z]+:" "" path ${pair})
  string(APPEND functions "
asm(\".section .rodata\\n\"
    \"oomscope_${name}_begin: .incbin \\\"${path}\\\"\\n\"
    \"oomscope_${name}_end: .byte 0\\n\"
    \".previous\\n\");
extern \"C\" const char oomscope_${name}_begin[] __attribute__((visibility(\"hidden\")));
extern \"C\" const char oomscope_${name}_end[] __attribute__((visibility(\"hidden\")));
std::string_view oomscope::embedded_${name}() {
  return {oomscope_${name}_begin, static_cast<size_t>(oomscope_${name}_end - oomscope_${name}_begin)};
}
")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/embedded_files.cc @ONLY CONTENT
"#include \"report/embedded_files.h\"
@functions@")
set_source_files_properties(${PROJECT_BINARY_DIR}/embedded_files.cc PROPERTIES OBJECT_DEPENDS "${page};${OOMSCOPE_FONT}")
target_sources(oomscope_report PRIVATE ${PROJECT_BINARY_DIR}/embedded_files.cc)
target_include_directories(oomscope_report SYSTEM PRIVATE ${OOMSCOPE_STB_INCLUDE})
