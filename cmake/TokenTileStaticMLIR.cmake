# Links LLVM and MLIR as static archives, so that a tool runs on a machine that
# has neither. Only LLVM, MLIR and libstdc++ are static: the CUDA driver and
# NVRTC are opened at run time, which takes a dynamic C library.
#
# Debian exports MLIR's archives with the LLVM dylib in their interfaces, and
# one program must not hold both forms. So the dylibs are taken out of every
# interface and LLVM's components are linked by name. lld takes from an archive
# only what is referenced, in whatever order the archives stand.

foreach(_target IN LISTS MLIR_EXPORTED_TARGETS)
  get_target_property(_type ${_target} TYPE)
  if(_type STREQUAL "EXECUTABLE")
    continue()
  endif()
  get_target_property(_interface ${_target} INTERFACE_LINK_LIBRARIES)
  if(_interface)
    list(FILTER _interface EXCLUDE REGEX "^(.<LINK_ONLY:)?(LLVM|MLIR)>?$")
    set_target_properties(${_target} PROPERTIES
      INTERFACE_LINK_LIBRARIES "${_interface}")
  endif()
endforeach()

set(_mlir_libraries MLIROptLib MLIRTransforms MLIRParser)
foreach(_property MLIR_DIALECT_LIBS MLIR_CONVERSION_LIBS MLIR_EXTENSION_LIBS
                  MLIR_TRANSLATION_LIBS)
  get_property(_libraries GLOBAL PROPERTY ${_property})
  list(FILTER _libraries EXCLUDE REGEX "Test")
  list(APPEND _mlir_libraries ${_libraries})
endforeach()

llvm_map_components_to_libnames(_llvm_libraries
  NVPTXCodeGen NVPTXDesc NVPTXInfo
  X86CodeGen X86AsmParser X86Desc X86Info
  OrcJIT OrcDebugging JITLink RuntimeDyld ExecutionEngine
  Passes CodeGen Target MC Linker BitReader BitWriter IRReader AsmParser Core
  FrontendOpenMP FrontendOpenACC FrontendAtomic FrontendOffloading
  DebugInfoDWARF TargetParser Support Demangle)

# The archives of zlib and zstd too: what remains is the C library.
get_target_property(_interface LLVMSupport INTERFACE_LINK_LIBRARIES)
list(TRANSFORM _interface REPLACE "libzstd_shared" "libzstd_static")
find_library(TOKENTILE_ZLIB_ARCHIVE libz.a REQUIRED)
list(TRANSFORM _interface REPLACE "ZLIB::ZLIB" "${TOKENTILE_ZLIB_ARCHIVE}")
set_target_properties(LLVMSupport PROPERTIES
  INTERFACE_LINK_LIBRARIES "${_interface}")

target_link_libraries(tokentile_mlir INTERFACE
  ${_mlir_libraries} ${_llvm_libraries})
target_link_options(tokentile_mlir INTERFACE
  -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--as-needed -Wl,-s)
