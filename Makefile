# The commands of the README. Everything real happens in CMake and scripts/.
BUILD ?= build
JOBS ?= $(shell nproc)

.PHONY: help install install-tests configure build test demo clean format

help:
	@echo "make build   install packages, configure and build; leaves $(BUILD)/tessera"
	@echo "make demo    build, then train a small U-Net on a 2x2 grid, kill it, resume it, draw a picture"
	@echo "make test    build, then run all tests"
	@echo "make format  run clang-format over our sources"
	@echo "make clean   remove $(BUILD)"

demo: configure
	cmake --build $(BUILD) -j $(JOBS) --target tessera
	scripts/demo.sh $(BUILD)

install:
	@scripts/install_packages.sh

install-tests:
	@scripts/install_packages.sh tests

configure: install
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release

build: configure
	cmake --build $(BUILD) -j $(JOBS)

test: install-tests
	$(MAKE) build
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	rm -rf $(BUILD)
