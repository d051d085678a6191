# src/plan/convolutions.txt.zst -> convolutions_embedded.cc in the build tree; part of the layer `plan`.
set(table ${PROJECT_SOURCE_DIR}/src/plan/convolutions.txt.zst)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/convolutions_embedded.cc @ONLY CONTENT
"#include \"plan/packed_conv_table.h\"
asm(\".section .rodata\\n\"
    \"oomscope_convolutions_begin: .incbin \\\"${table}\\\"\\n\"
    \"oomscope_convolutions_end: .byte 0\\n\"
    \".previous\\n\");
extern \"C\" const char oomscope_convolutions_begin[] __attribute__((visibility(\"hidden\")));
extern \"C\" const char oomscope_convolutions_end[] __attribute__((visibility(\"hidden\")));
std::string_view oomscope::packed_conv_table() {
  return {oomscope_convolutions_begin, static_cast<size_t>(oomscope_convolutions_end - oomscope_convolutions_begin)};
}
")
set_source_files_properties(${PROJECT_BINARY_DIR}/convolutions_embedded.cc PROPERTIES OBJECT_DEPENDS ${table})
target_sources(oomscope_plan PRIVATE ${PROJECT_BINARY_DIR}/convolutions_embedded.cc)
