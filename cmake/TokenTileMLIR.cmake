# Finds MLIR and LLVM 22 and wraps them in one interface target, so that every
# library of ours links them in the same way: the two dylibs by default, or
# static components for self-contained tools. Never both in one program.

find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# TableGen and C++ both search these.
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})

add_library(tokentile_mlir INTERFACE)
separate_arguments(_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_options(tokentile_mlir INTERFACE ${_definitions})

if(TOKENTILE_STATIC)
  include(TokenTileStaticMLIR)
else()
  target_link_libraries(tokentile_mlir INTERFACE MLIR LLVM)
endif()

# A library that uses MLIR, compiled with the shared precompiled header.
function(tokentile_mlir_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${NAME} PUBLIC tokentile_mlir ${ARG_LINK})
  target_precompile_headers(${NAME} REUSE_FROM tokentile_pch)
  if(ARG_DEPENDS)
    add_dependencies(${NAME} ${ARG_DEPENDS})
  endif()
endfunction()

file(WRITE ${PROJECT_BINARY_DIR}/pch/Anchor.cpp "")
add_library(tokentile_pch OBJECT ${PROJECT_BINARY_DIR}/pch/Anchor.cpp)
target_link_libraries(tokentile_pch PUBLIC tokentile_mlir)
target_precompile_headers(tokentile_pch PRIVATE
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/LLVMIR/NVVMDialect.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/BuiltinTypes.h>
  <mlir/IR/DialectImplementation.h>
  <mlir/IR/OpImplementation.h>
  <mlir/Pass/Pass.h>
  <mlir/Pass/PassManager.h>
  <mlir/Parser/Parser.h>
  <llvm/ADT/TypeSwitch.h>)
