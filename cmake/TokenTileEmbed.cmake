# tokentile_embed(VARIABLE NAME FILES): writes a source that defines the string
# `tokentile::NAME`, the joined text of FILES, and sets VARIABLE to its path.
# For CUDA C++ that is compiled by NVRTC when a program runs.
function(tokentile_embed VARIABLE NAME)
  set(_text "")
  foreach(_file IN LISTS ARGN)
    file(READ ${_file} _content)
    string(APPEND _text "${_content}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_file})
  endforeach()
  set(_output ${CMAKE_CURRENT_BINARY_DIR}/${NAME}.cpp)
  file(CONFIGURE OUTPUT ${_output} @ONLY CONTENT
"namespace tokentile {
extern const char *const ${NAME};
const char *const ${NAME} = R\"embedded(@_text@)embedded\";
} // namespace tokentile
")
  set(${VARIABLE} ${_output} PARENT_SCOPE)
endfunction()
