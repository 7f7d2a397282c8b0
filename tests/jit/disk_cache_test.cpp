// The disk cache in one process: what it finds, what it throws away, who may claim what.
#include "jit/cache/disk_cache.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "jit/cache/cache_entry.hpp"
#include "processes.hpp"

using namespace kplan;
using namespace kplan::test;
using jit::CacheKey;
using jit::DiskCache;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t mib = 1 << 20;

std::vector<std::byte> image(std::size_t bytes, int seed = 0) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
  return out;
}

CacheKey key(int number) { return CacheKey("a key of " + std::to_string(number)); }

std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) total += (entry.file_size() + 4095) / 4096 * 4096;
  }
  return total;
}

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) count += entry.is_regular_file();
  return count;
}

}  // namespace

TEST_CASE("what was stored under a key is found under it and under no other") {
  const TemporaryFolder folder;
  const auto session = DiskCache(folder.path(), mib).open();
  REQUIRE(session.is_open());
  CHECK_FALSE(session.find(key(1)));
  session.store(key(1), image(100));
  CHECK(session.find(key(1)) == image(100));
  CHECK_FALSE(session.find(key(2)));
  session.store(key(1), image(5000, 3));  // in place of the first
  CHECK(session.find(key(1)) == image(5000, 3));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("an entry under the file name of another key is not taken for it") {
  const auto file = jit::write_entry("one key", image(64));
  CHECK(jit::read_entry(file, "one key"));
  CHECK_FALSE(jit::read_entry(file, "two key"));
  CHECK_FALSE(jit::read_entry(file, "one ke"));
  CHECK_FALSE(jit::read_entry(file, ""));
}

TEST_CASE("every single bit of an entry counts") {
  auto file = jit::write_entry("key", image(33));
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    file[bit / 8] ^= std::byte(1 << bit % 8);
    CHECK_FALSE(jit::read_entry(file, "key"));
    file[bit / 8] ^= std::byte(1 << bit % 8);
  }
  for (std::size_t size = 0; size < file.size(); ++size) CHECK_FALSE(jit::read_entry({file.data(), size}, "key"));
  CHECK(jit::read_entry(file, "key"));
}

TEST_CASE("the cache stays near its limit, and what was stored last is there") {
  const TemporaryFolder folder;
  const auto session = DiskCache(folder.path(), 4 * mib).open();
  constexpr int stores = 4000;
  for (int i = 0; i < stores; ++i) session.store(key(i), image(3000));
  // A folder may be over its share by what comes between two looks at it.
  CHECK(bytes_in(folder.path()) <= 6 * mib);
  CHECK(bytes_in(folder.path()) >= 2 * mib);
  for (int i = stores - 20; i < stores; ++i) CHECK(session.find(key(i)));
  int found = 0;
  for (int i = 0; i < 500; ++i) found += session.find(key(i)).has_value();
  CHECK(found < 100);
}

TEST_CASE("an entry that is used stays young, and what a process left half written goes") {
  const TemporaryFolder folder;
  const auto session = DiskCache(folder.path(), mib).open();
  session.store(key(1), image(10));
  fs::path entry;
  for (const auto& e : fs::recursive_directory_iterator(folder.path()))
    if (e.is_regular_file()) entry = e.path();
  const auto days_ago = fs::file_time_type::clock::now() - std::chrono::hours(48);
  fs::last_write_time(entry, days_ago);
  const fs::path left = entry.parent_path() / ".17.0.0", young = entry.parent_path() / ".18.0.0";
  for (const auto& path : {left, young}) std::ofstream(path) << "half";
  fs::last_write_time(left, days_ago);
  CHECK(session.find(key(1)));
  CHECK(fs::last_write_time(entry) > days_ago + std::chrono::hours(24));
  for (int i = 2; i < 4000; ++i) session.store(key(i), image(10));
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(young));
}

TEST_CASE("a store that finds no room leaves nothing behind", "[.][child]") {
  // In a process of its own: the limit on the size of files stands for a full disk, and must not end it.
  const TemporaryFolder folder;
  const auto session = DiskCache(folder.path(), mib).open();
  const rlimit limit{1000, 1000};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  session.store(key(1), image(5000));
  session.store(key(2), image(100));
  CHECK_FALSE(session.find(key(1)));
  CHECK(session.find(key(2)));
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a full disk is no error") {
  const Ended ended = run_child("a store that finds no room leaves nothing behind");
  INFO(ended.output);
  CHECK(ended.status == 0);
}

TEST_CASE("one session at a time has a key's claim, and it goes with the session or the process") {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), mib);
  auto one = cache.open();
  {
    auto other = cache.open();
    CHECK(one.claim(key(1)));
    CHECK_FALSE(other.claim(key(1)));
    CHECK(other.claim(key(2)));
    one.give_back(key(1));
    CHECK(other.claim(key(1)));
    CHECK_FALSE(one.claim(key(1)));
  }
  CHECK(one.claim(key(1)));
  CHECK(one.claim(key(2)));
}

TEST_CASE("without a folder nothing is found and everything may be claimed") {
  auto session = DiskCache("", mib).open();
  CHECK_FALSE(session.is_open());
  CHECK_FALSE(session.why_not().empty());
  session.store(key(1), image(10));
  CHECK_FALSE(session.find(key(1)));
  CHECK(session.claim(key(1)));
}
