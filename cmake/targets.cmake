# The library: one object library per folder, collected into Tessera::tessera.
#
#   tessera_folder(geometry SOURCES ...)          no tensors here
#   tessera_folder(graph TORCH SOURCES ...)       sees tensors
#
# Which folder may include which is not the linker's business: docs/architecture.md says it, and
# tests/unit/structure checks it.

add_library(tessera_options INTERFACE)
# No contraction to fused multiply-adds: a kernel that recomputes a number must get the same bits,
# however the compiler inlines it.
target_compile_options(tessera_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -ffp-contract=off>)
if(TESSERA_WERROR)
  target_compile_options(tessera_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# GCC 12 and 13 see overflows inside fmt and std::string that are not there, once they inline enough,
# and 13 takes a reference into a table for one to the key that it was looked up by.
target_compile_options(tessera_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>)
if(TESSERA_NATIVE)
  target_compile_options(tessera_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
target_include_directories(tessera_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(tessera_options INTERFACE tessera_headers Tessera::torch)

# Torch's headers, compiled once: with the optimisation of the library, and without any for code
# whose time is in what it calls (tests, options of commands).
set(TESSERA_PRECOMPILED <ATen/ATen.h> <fmt/format.h> <nlohmann/json.hpp>)
add_library(tessera_pch STATIC ${PROJECT_SOURCE_DIR}/cmake/precompile_torch.cpp)
target_link_libraries(tessera_pch PRIVATE tessera_options)
target_precompile_headers(tessera_pch PRIVATE ${TESSERA_PRECOMPILED})

add_library(tessera_library)
set_target_properties(tessera_library PROPERTIES
  OUTPUT_NAME tessera EXPORT_NAME tessera VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(tessera_library PUBLIC cxx_std_20)
target_include_directories(tessera_library PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
target_link_libraries(tessera_library PUBLIC Tessera::torch Tessera::fmt PRIVATE ${CMAKE_DL_LIBS})
add_library(Tessera::tessera ALIAS tessera_library)

# Programs share the library's precompiled header, so they are compiled as it is: not as -fPIE.
function(tessera_program target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
endfunction()

function(tessera_unity target batch)
  if(TESSERA_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# CUDA: what takes the place of WITHOUT_CUDA where there is CUDA.
function(tessera_folder name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;CUDA;WITHOUT_CUDA" ${ARGN})
  set(target tessera_${name})
  if(TESSERA_HAS_CUDA)
    list(APPEND ARG_SOURCES ${ARG_CUDA})
    set_source_files_properties(${ARG_CUDA} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    list(FILTER ARG_CUDA INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${ARG_CUDA} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  else()
    list(APPEND ARG_SOURCES ${ARG_WITHOUT_CUDA})
  endif()
  add_library(${target} OBJECT ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE tessera_options)
  tessera_unity(${target} 12)
  if(ARG_TORCH)
    target_precompile_headers(${target} REUSE_FROM tessera_pch)
  endif()
  target_sources(tessera_library PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()
