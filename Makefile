# The commands of the README. Everything real happens in CMake and scripts/.
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: help install build test clean format

help:
	@echo "make build   install packages, configure and build; leaves $(BUILD)/tessera"
	@echo "make test    build, then run all tests"
	@echo "make format  run clang-format over our sources"
	@echo "make clean   remove $(BUILD)"

install:
	@scripts/install_packages.sh

build: install
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release
	cmake --build $(BUILD) -j $(JOBS)

test: build
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf $(BUILD)
