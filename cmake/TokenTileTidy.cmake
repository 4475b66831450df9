# `ninja tidy` runs clang-tidy 22 (package clang-tidy-22) over every source, as
# .clang-tidy says.
find_program(TOKENTILE_RUN_CLANG_TIDY NAMES run-clang-tidy-22)
if(TOKENTILE_RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${TOKENTILE_RUN_CLANG_TIDY} -quiet -p ${PROJECT_BINARY_DIR}
      "${PROJECT_SOURCE_DIR}/(bench|codegen|dialect|runtime|test|tools)/"
    USES_TERMINAL)
else()
  add_custom_target(tidy
    COMMAND ${CMAKE_COMMAND} -E echo "tidy needs the package clang-tidy-22"
    COMMAND ${CMAKE_COMMAND} -E false)
endif()
