# The page: built again and compared, its arithmetic under Node, and in a real browser. See tools/check_web.sh.
add_test(NAME web.build COMMAND ${PROJECT_SOURCE_DIR}/tools/check_web.sh build)
add_test(NAME web.numbers COMMAND ${PROJECT_SOURCE_DIR}/tools/check_web.sh numbers $<TARGET_FILE:oomscope>)
add_test(NAME web.page COMMAND ${PROJECT_SOURCE_DIR}/tools/check_web.sh page $<TARGET_FILE:oomscope>)
set_tests_properties(web.build web.numbers web.page PROPERTIES LABELS web SKIP_RETURN_CODE 77 TIMEOUT 300)
