// Code images and the executable memory that they are placed in.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>

#include "jit/code_image.hpp"
#include "jit/compiler.hpp"
#include "jit/long_copy.hpp"

using namespace kplan;
using jit::CodeArena;
using jit::CodeImage;
using jit::Compiler;
using jit::PlacedCode;

namespace {

std::vector<std::byte> bytes_of(std::size_t count, unsigned char with) {
  return std::vector<std::byte>(count, std::byte(with));
}

CodeImage view(const std::vector<std::byte>& image) {
  const auto out = CodeImage::read(image);
  REQUIRE(out);
  return *out;
}

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

/// The line of /proc/self/maps that an address is in.
std::string mapping_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    std::sscanf(line.c_str(), "%lx-%lx", &begin, &end);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (at >= begin && at < end) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("an image's calls and pointers are filled in for the place where it will run") {
  auto code = bytes_of(64, 0x11);
  const std::uint64_t offset = 40;
  std::memcpy(code.data() + 16, &offset, sizeof offset);
  const CodeImage::Call calls[] = {{0, 0}, {32, 2}};
  const std::uint32_t pointers[] = {16};
  const auto image = CodeImage::write(code, 32, 48, calls, pointers);
  const CodeImage read = view(image);
  CHECK(read.code_bytes() == 64);
  CHECK(read.alignment() == 32);
  CHECK(read.entry() == 48);
  std::byte to[64], at[64];
  read.place(to, at);
  CHECK(word_at(to) == reinterpret_cast<std::uintptr_t>(&jit::copy_long));  // for memcpy
  CHECK(word_at(to + 32) == reinterpret_cast<std::uintptr_t>(&std::memset));
  CHECK(word_at(to + 16) == reinterpret_cast<std::uintptr_t>(at + 40));
  CHECK(word_at(to + 8) == 0x1111111111111111);
}

TEST_CASE("bytes that are no image are refused, whatever their numbers say") {
  const CodeImage::Call calls[] = {{8, 1}};
  const std::uint32_t pointers[] = {0};
  const auto good = CodeImage::write(bytes_of(16, 1), 16, 4, calls, pointers);
  CHECK(CodeImage::read(good));
  for (std::size_t size = 0; size < good.size(); ++size) CHECK_FALSE(CodeImage::read({good.data(), size}));
  // Numbers of 32 bits, in their order: magic, alignment, entry, calls, pointers, code bytes, the call, the pointer.
  for (const std::size_t number : {0, 1, 2, 3, 4, 5, 6, 7, 8}) {
    for (const std::uint32_t wrong : {0x7fffffffu, 0xffffffffu, 0x80000000u, 9u + 8u}) {
      auto bad = good;
      std::memcpy(bad.data() + 4 * number, &wrong, sizeof wrong);
      INFO("number " << number << " is " << wrong);
      CHECK_FALSE(CodeImage::read(bad));
    }
  }
}

TEST_CASE("many kernels share few mappings, and the memory goes with them") {
  CodeArena& arena = CodeArena::instance();
  const auto image = CodeImage::write(bytes_of(700, 0xc3), 64, 0, {}, {});
  const auto before = arena.usage();
  std::vector<PlacedCode> kept;
  for (int i = 0; i < 3000; ++i) {
    auto placed = arena.place(std::vector{view(image)});
    kept.push_back(std::move(placed[0]));
  }
  const auto full = arena.usage();
  CHECK(full.mappings - before.mappings < 60);
  CHECK(full.bytes - before.bytes < 3000 * 1500);
  kept.clear();
  CHECK(arena.usage().bytes <= before.bytes + (64 << 10));
}

TEST_CASE("code is never writable where it can be run, and is not overwritten while it lives") {
  CodeArena& arena = CodeArena::instance();
  std::vector<std::vector<std::byte>> images;
  for (unsigned char i = 0; i < 100; ++i) images.push_back(CodeImage::write(bytes_of(333, i), 16, 0, {}, {}));
  std::vector<PlacedCode> placed;
  for (const auto& image : images) placed.push_back(std::move(arena.place(std::vector{view(image)})[0]));
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto* at = reinterpret_cast<const std::byte*>(placed[i].function());
    CHECK(std::memcmp(at, bytes_of(333, static_cast<unsigned char>(i)).data(), 333) == 0);
    CHECK(mapping_of(at).find(" r-xs ") != std::string::npos);
  }
}

TEST_CASE("an image larger than a region has one of its own") {
  const auto image = CodeImage::write(bytes_of(300000, 5), 4096, 0, {}, {});
  auto placed = CodeArena::instance().place(std::vector{view(image), view(image)});
  for (const PlacedCode& p : placed) {
    const auto* at = reinterpret_cast<const std::byte*>(p.function());
    CHECK(reinterpret_cast<std::uintptr_t>(at) % 4096 == 0);
    CHECK(at[299999] == std::byte{5});
  }
}

// The memory of sanitizers is not made for a fork while another thread allocates.
#if !defined(KPLAN_SANITIZE_THREAD) && !defined(KPLAN_SANITIZE_ADDRESS)
TEST_CASE("after a fork neither process writes over the other's code") {
  CodeArena& arena = CodeArena::instance();
  const auto mine = CodeImage::write(bytes_of(100, 1), 16, 0, {}, {});
  const auto childs = CodeImage::write(bytes_of(100, 2), 16, 0, {}, {});
  const auto before = arena.place(std::vector{view(mine)});
  Compiler::instance();  // sees to it that the arena hears of forks
  const pid_t child = fork();
  const auto placed = arena.place(std::vector(50, view(child == 0 ? childs : mine)));
  if (child == 0) {
    // Time for the parent to place its own.
    usleep(50000);
    bool ok = *reinterpret_cast<const std::byte*>(before[0].function()) == std::byte{1};
    for (const PlacedCode& p : placed) ok = ok && *reinterpret_cast<const std::byte*>(p.function()) == std::byte{2};
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  for (const PlacedCode& p : placed) CHECK(*reinterpret_cast<const std::byte*>(p.function()) == std::byte{1});
}
#endif
