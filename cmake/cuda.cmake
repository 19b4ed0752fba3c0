# GPUs: where LibTorch is built with CUDA and there is a compiler for it. Sets TESSERA_HAS_CUDA.

set(TESSERA_HAS_CUDA OFF)
if(TESSERA_CUDA AND TARGET torch_cuda)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TESSERA_HAS_CUDA ON)
    # LibTorch's package has replaced what the user said by its own.
    set(CMAKE_CUDA_ARCHITECTURES ${tessera_architectures})
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17) # CMake before 3.31 does not know 20 for nvcc 13
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # the one that LibTorch has loaded
    find_package(CUDAToolkit REQUIRED)
  else()
    message(STATUS "No nvcc: LibTorch runs on GPUs, and Tessera will not; install CUDA's toolkit")
  endif()
endif()
